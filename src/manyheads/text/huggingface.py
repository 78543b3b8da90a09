"""Use the tokenizers of pre-trained models: WordPiece and byte-level BPE, by the `tokenizers` library.

The ids equal the ids of transformers' fast tokenizers, renumbered so that the special symbols come first, as in all
vocabularies of this package. Two things differ, so that every string can be encoded: text such as ``[SEP]`` is not
a special symbol, and surrogates become the characters that they encode, or U+FFFD.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from manyheads.config.schema.base import Limits
from manyheads.errors import require
from manyheads.text.interface import BOS, EOS, PAD, SPECIALS, UNK, Tokenizer
from manyheads.text.normalize import join_surrogates
from manyheads.text.vocabulary import StoredJson, damaged_error

Family = Literal["bert", "distilbert", "roberta", "gpt2"]
_ROLES = (UNK, PAD, BOS, EOS)  # the order of `StoredTokenizer.specials`


class StoredTokenizer(StoredJson):
    """The JSON file of a `HuggingFaceTokenizer`.

    Attributes:
        family: type of the pre-trained model; an export has the same type.
        rows: number of rows of the original embedding; there may be fewer tokens.
        specials: original ids of the unknown, padding, begin ([CLS]) and end ([SEP]) symbol; null if missing.
        mask: original id of the mask symbol.
        marks_between: number of end symbols between two texts.
        content: `tokenizer.json` of the `tokenizers` library.
    """

    indent: ClassVar[int | None] = None

    kind: Literal["huggingface"] = "huggingface"
    family: Family
    rows: Annotated[int, Limits(gt=0, le=10_000_000)]
    specials: tuple[int | None, int | None, int | None, int | None]
    mask: int | None = None
    marks_between: Literal[1, 2] = 1
    content: dict[str, Any]

    def check_numbers(self) -> None:
        """Refuse ids outside the vocabulary, and equal ids of two symbols."""
        ids = [number for number in self.specials if number is not None]
        if len(set(ids)) != len(ids) or any(not 0 <= n < self.rows for n in (*ids, self.mask or 0)):
            raise ValueError("special symbols are no rows of the vocabulary, or the same row")


class HuggingFaceTokenizer(Tokenizer):
    """A tokenizer of the `tokenizers` library, which also normalises the text.

    Attributes:
        stored: content of its file.
        original_ids: original id of each id of this tokenizer; None for a special symbol that the original lacks.
        ids_by_original: id in this tokenizer of each original id.

    Raises:
        RunError: the library cannot read the file, or an id is outside the rows of the embedding.
        MissingExtraError: the library is not installed.
    """

    kind = "huggingface"

    def __init__(self, stored: StoredTokenizer, *, keep_space: bool = False) -> None:
        super().__init__(lowercase=False, keep_space=keep_space)
        library = require("tokenizers", extra="hf", purpose="the vocabulary of a pre-trained model")
        try:
            self.processor = library.Tokenizer.from_str(json.dumps(stored.content))
        except Exception as error:  # the library raises no more specific exception
            raise damaged_error(self.kind, f"the library does not read it: {error}") from error
        self.processor.no_truncation()
        self.processor.no_padding()
        self.processor.encode_special_tokens = True  # "[SEP]" in a text is text
        named = self.processor.get_vocab(with_added_tokens=True)
        beyond = [token for token, number in named.items() if number >= stored.rows]
        if beyond:
            raise damaged_error(self.kind, f"{beyond[0]!r} and others have numbers beyond its {stored.rows:,} rows")
        self.stored = stored
        self.names = {number: token for token, number in named.items()}
        special = {number for number in stored.specials if number is not None}
        rest = [number for number in range(stored.rows) if number not in special]
        self.original_ids: list[int | None] = [*stored.specials, *rest]
        self.ids_by_original = {number: i for i, number in enumerate(self.original_ids) if number is not None}
        self.marks_between = stored.marks_between
        self.mask = UNK if stored.mask is None else self.ids_by_original[stored.mask]
        self.absent = tuple(role for role in _ROLES if stored.specials[role] is None)

    @classmethod
    def load(cls, data: bytes, *, keep_space: bool = False) -> Self:
        """Load a tokenizer from the bytes of `to_bytes`; raises `RunError`."""
        return cls(StoredTokenizer.parse(data, cls.kind), keep_space=keep_space)

    @property
    def size(self) -> int:
        """Vocabulary size: the original rows, and the special symbols that the original does not have."""
        return len(self.original_ids)

    @cached_property
    def byte_level(self) -> bool:
        """Whether the pieces are byte-level: each byte is written as one character."""
        return any(
            isinstance(part, dict) and '"ByteLevel"' in json.dumps(part)
            for part in (self.stored.content.get("decoder"), self.stored.content.get("pre_tokenizer"))
        )

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text, without begin and end symbols."""
        self.refuse_string(texts)
        sound = [join_surrogates(text) for text in texts]
        encodings = self.processor.encode_batch_fast(sound, add_special_tokens=False)
        return [[self.ids_by_original[number] for number in encoding.ids] for encoding in encodings]

    def decode(self, ids: Sequence[int]) -> str:
        """Decode the pieces; begin, end and padding symbols have no text."""
        return self.decode_runs(ids, self.decode_known)

    def decode_known(self, ids: Iterable[int]) -> str:
        """Decode known tokens; bytes that form no character are left out."""
        numbers = [self.original_ids[i] for i in ids]
        text: str = self.processor.decode(numbers, skip_special_tokens=False)
        if self.byte_level and "\ufffd" in text:
            names = [self.names[number] for number in numbers if number is not None and number in self.names]
            return b"".join(map(_bytes_of, names)).decode(errors="ignore")
        return text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces as the library writes them (``##ing``); byte-level pieces as their text."""
        return [self.piece(i) for i in self.check(ids)]

    def piece(self, i: int) -> str:
        """Return one piece."""
        number = self.original_ids[i]
        if i < len(SPECIALS) or number is None:
            return SPECIALS[i]
        name = self.names.get(number, f"<row {number}>")
        return _spell(name) if self.byte_level and number in self.names else name

    def to_bytes(self) -> bytes:
        """Return the content of the JSON file."""
        return self.stored.to_bytes()


def _spell(piece: str) -> str:
    """Return the text of a byte-level piece: a blank as ``▁``, incomplete UTF-8 as ``<0xEA>``."""
    if any(character not in BYTES for character in piece):
        return piece  # an added token, whose name is plain text
    data = _bytes_of(piece)
    try:
        return data.decode().replace(" ", "▁")
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in data)


def _bytes_of(piece: str) -> bytes:
    """Return the bytes of a byte-level piece, or of the name of an added token, which is plain text."""
    if any(character not in BYTES for character in piece):
        return piece.encode()
    return bytes(BYTES[character] for character in piece)


def _byte_characters() -> dict[str, int]:
    """Return the byte of each character of byte-level pieces (Radford et al. 2019, section 2.2).

    A byte that is a printable Latin-1 character is written as that character, the others in order from U+0100.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


BYTES = _byte_characters()
