"""Define the interface of tokenizers: text to ids, ids to text, and storage as bytes."""

from __future__ import annotations

import copy
import hashlib
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Literal, Self

from bitext.unicode import known, on_known
from manyheads.errors import UsageError
from manyheads.text.normalize import normalize, normalize_target, source_form, unify
from manyheads.text.reserved import NONCHARACTER, SYMBOLS, language_symbol

UNK, PAD, BOS, EOS = 0, 1, 2, 3
SPECIALS = ("<unk>", "<pad>", "<s>", "</s>")
CONTROL_IDS = frozenset((PAD, BOS, EOS))
Side = Literal["", "source", "target"]
Encode = Callable[[Sequence[str]], list[list[int]]]  # texts -> token ids


def lower(text: str) -> str:
    """Lower-case a text and compose it again (NFC): lower-casing may decompose characters."""
    return on_known(lambda known_text: unicodedata.normalize("NFC", known_text.lower()), text)


class Tokenizer(ABC):
    """Convert text to ids and back; immutable after training.

    Attributes:
        kind: name in the configuration: bpe, unigram, words, characters, bytes, marian, moses-bpe,
            huggingface.
        suffix: suffix of the file that holds `to_bytes`.
        lowercase: whether text is lower-cased before it is encoded.
        keep_space: whether white space is kept; otherwise each run of it becomes one blank, and it is stripped at
            both ends.
        side: side of a translation, "source" or "target", whose normal form the text gets; "" for `normalize`.
        marks_between: number of end symbols between two texts of one example.
        mask: id of the mask symbol.
        absent: special symbols that the vocabulary of a pre-trained model does not have; they are never encoded
            or generated.
        reserved: id of each reserved symbol (`manyheads.text.reserved`); these have no text.
    """

    kind: str
    suffix = ".json"
    side: Side = ""
    marks_between: int = 1
    mask: int = UNK
    absent: tuple[int, ...] = ()
    reserved: Mapping[str, int] = {}

    def __init__(self, *, lowercase: bool, keep_space: bool = False) -> None:
        self.lowercase = lowercase
        self.keep_space = keep_space

    def for_side(self, side: Side) -> Self:
        """Return the tokenizer with the normal form of a side."""
        own = copy.copy(self)
        own.side = side
        return own

    @property
    @abstractmethod
    def size(self) -> int:
        """Vocabulary size V, the four special symbols included."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text, without begin and end symbols. Every string can be encoded.

        An empty string has no ids, and neither has a blank one unless white space is kept.
        """

    def sample(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Encode each text by a random segmentation, a function of the texts and the seed alone.

        Raises:
            UsageError: this kind of tokenizer has only one segmentation of a text.
        """
        raise UsageError(
            f'tokenizer.kind = "{self.kind}" has no subword sampling. '
            'Use kind = "bpe" or "unigram", or tokenizer.sampling = 0.'
        )

    def encode_marked(self, texts: Sequence[str], seed: int | None = None) -> list[list[int]]:
        """Encode texts with reserved symbols, written as noncharacters (`manyheads.text.reserved`).

        The text between two of them is encoded by `encode`, or by `sample` if there is a seed.

        Raises:
            UsageError: this vocabulary lacks a symbol.
        """
        split = [NONCHARACTER.split(text) for text in texts]  # text, noncharacter, text, ..., text
        plain = [text for row in split for text in row[::2]]
        encoded = iter(self.encode(plain) if seed is None else self.sample(plain, seed))
        rows: list[list[int]] = []
        for row in split:
            ids = next(encoded)
            for character in row[1::2]:
                ids = [*ids, self.reserved_id(SYMBOLS[character]), *next(encoded)]
            rows.append(ids)
        return rows

    def reserved_id(self, symbol: str) -> int:
        """Return the id of a reserved symbol; raises `UsageError` if the vocabulary lacks it."""
        if symbol not in self.reserved:
            raise UsageError(f"this vocabulary has no symbol {symbol}: the model was trained without it.")
        return self.reserved[symbol]

    def language_prefix(self, language: str) -> tuple[int, ...]:
        """Return the tokens that begin a translation into a language: its symbol, if the vocabulary has it."""
        symbol = language_symbol(language)
        return (self.reserved[symbol],) if symbol in self.reserved else ()

    def spellings(self, text: str, most: int) -> list[list[int]]:
        """Return sequences of ids that decode to a text at the start of a word, the usual segmentation first.

        Args:
            text: any text.
            most: maximum number of sequences; shorter sequences come first.
        """
        return self.encode([text])

    @cached_property
    def byte_values(self) -> Mapping[int, int]:
        """Return the byte of UTF-8 of each id that stands for one."""
        return {}

    def whole_characters(
        self, ids: Sequence[int], source: str = "", *, unfinished: bool = False
    ) -> tuple[list[int], int]:
        """Leave out ids of bytes that form no character, which a model may generate.

        If exactly one character of the source begins with such bytes, a copy of it was meant, and they are
        completed.

        Args:
            ids: output of a model.
            source: text whose characters may be copied.
            unfinished: whether further ids may follow, so that bytes at the end are left out, and not completed.

        Returns:
            The ids, and the number of broken characters.
        """
        values = self.byte_values
        if not values or values.keys().isdisjoint(ids):
            return list(ids), 0
        whole: list[int] = []
        broken = 0
        runs = [list(run) for _, run in groupby(ids, values.__contains__)]
        for index, run in enumerate(runs):
            if run[0] not in values:
                whole += run
                continue
            data, start = bytes(values[i] for i in run), 0
            for first, last in _broken_characters(data):
                whole += run[start:first]
                start = last
                broken += 1
                at_end = unfinished and index == len(runs) - 1 and last == len(data)
                whole += [] if at_end else self.completed(data[first:last], source)
            whole += run[start:]
        return whole, broken

    def output_text(self, ids: Sequence[int], source: str = "", *, unfinished: bool = False) -> str:
        """Return the text of the output of a model; arguments as of `whole_characters`."""
        return self.decode(self.whole_characters(ids, source, unfinished=unfinished)[0])

    def completed(self, beginning: bytes, source: str) -> list[int]:
        """Return the ids of the only character of a text with this beginning in UTF-8; [] if there is not one."""
        found = {character for character in source if character.encode(errors="replace").startswith(beginning)}
        ids = {byte: i for i, byte in self.byte_values.items()}
        return [ids[byte] for byte in found.pop().encode()] if len(found) == 1 else []

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids; padding, begin and end symbols are left out, the unknown symbol becomes ``<unk>``.

        Bytes that form no character are left out (`whole_characters`).

        Raises:
            UsageError: an id is outside the vocabulary.
        """

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return one readable piece for each id; a blank is shown as ``▁``, a byte as ``<0xEA>``.

        Raises:
            UsageError: an id is outside the vocabulary.
        """

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return the bytes from which `load_tokenizer` loads this tokenizer."""

    @cached_property
    def sha256(self) -> str:
        """Return the SHA-256 of `to_bytes` in hexadecimal: equal vocabularies have equal digests."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @cached_property
    def knows_letters(self) -> bool:
        """Return whether text with letters can be encoded; not so in a task of numbers alone."""
        pieces = (self.pieces([token])[0] for token in range(len(SPECIALS), self.size))
        whole = (piece for piece in pieces if not piece.startswith("<0x"))
        return next((True for piece in whole if any(map(str.isalpha, known(piece)))), self.kind == "bytes")

    def prepare(self, texts: Sequence[str]) -> list[str]:
        """Normalise the texts as texts of their side, and lower-case them if configured.

        Raises:
            UsageError: the argument is a string, not a list of strings.
        """
        self.refuse_string(texts)
        formed = map(source_form, texts) if self.side == "source" else texts
        normalise = unify if self.keep_space else normalize_target if self.side == "target" else normalize
        normal = list(map(normalise, formed))
        return list(map(lower, normal)) if self.lowercase else normal

    def refuse_string(self, texts: Sequence[str]) -> None:
        """Raise `UsageError` for a string, which would be taken for a list of its characters."""
        if isinstance(texts, str):
            raise UsageError("the tokenizer takes a list of texts, not one text. Use encode([text])[0].")

    def decode_runs(self, ids: Sequence[int], decode: Callable[[Iterator[int]], str]) -> str:
        """Decode runs of known ids by `decode`, each run of unknown ids as one ``<unk>``; errors: see `decode`."""
        text_ids = (i for i in self.check(ids) if i not in CONTROL_IDS)
        return " ".join(SPECIALS[UNK] if unknown else decode(run) for unknown, run in groupby(text_ids, UNK.__eq__))

    def check(self, ids: Sequence[int]) -> list[int]:
        """Return the ids as plain integers; raises `UsageError` if one is outside the vocabulary."""
        plain = [int(i) for i in ids]
        outside = next((i for i in plain if not 0 <= i < self.size), None)
        if outside is not None:
            raise UsageError(
                f"token id {outside} is outside this vocabulary of {self.size} (0 to {self.size - 1}). "
                "Were the ids made by another tokenizer?"
            )
        return plain


def _broken_characters(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of some bytes that is no UTF-8."""
    start = 0
    while start < len(data):
        try:
            data[start:].decode()
        except UnicodeDecodeError as error:
            yield start + error.start, start + error.end
            start += error.end
        else:
            return


def growing_text(tokenizer: Tokenizer, tokens: Iterable[int], source: str = "") -> Iterator[str]:
    """Yield the text that each token adds, as soon as no later token can change it.

    Args:
        tokenizer: tokenizer of the text.
        tokens: output of a model.
        source: text whose characters may be copied (`Tokenizer.whole_characters`).
    """
    ids: list[int] = []
    shown = ""
    for token in tokens:
        ids.append(token)
        text = tokenizer.output_text(ids, source, unfinished=True)
        if len(text) > len(shown) and text.startswith(shown):
            yield text[len(shown) :]
            shown = text
    rest = tokenizer.output_text(ids, source)[len(shown) :]
    if rest:
        yield rest
