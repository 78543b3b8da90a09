"""What a tokenizer is: text to ids, ids to text, and itself to bytes."""

from __future__ import annotations

import hashlib
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

from manyheads.errors import UsageError
from manyheads.text.normalize import normalize, unify

__all__ = ["BOS", "EOS", "PAD", "SPECIALS", "UNK", "Tokenizer", "lower"]

UNK, PAD, BOS, EOS = 0, 1, 2, 3
SPECIALS = ("<unk>", "<pad>", "<s>", "</s>")
SILENT = frozenset((PAD, BOS, EOS))


def lower(text: str) -> str:
    """Lower-case a text, composed again: the lower case of a composed text may not be."""
    return unicodedata.normalize("NFC", text.lower())


class Tokenizer(ABC):
    """Turns text into ids and back; it never changes after its training.

    Attributes:
        kind: the configuration's name for it: bpe, unigram, words, characters, bytes, marian, huggingface.
        suffix: of the file that holds `to_bytes`.
        lowercase: whether text is lower-cased before it is encoded.
        keep_space: whether white space stays as it is; else every run of it is one blank, and none stands around.
        marks_between: end marks that stand between two texts of one example.
        mask: the id that stands for a hidden token.
        absent: special symbols that a pre-trained model's vocabulary lacks: no text has them, no model writes them.
    """

    kind: str
    suffix = ".json"
    marks_between: int = 1
    mask: int = UNK
    absent: tuple[int, ...] = ()

    def __init__(self, *, lowercase: bool, keep_space: bool = False) -> None:
        self.lowercase = lowercase
        self.keep_space = keep_space

    @property
    @abstractmethod
    def size(self) -> int:
        """Vocabulary size V, the four special symbols included."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without special symbols around them. Any string will do.

        An empty one has no ids, nor has a blank one unless white space is kept.
        """

    def sample(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Ids of each text, split by chance: a function of the texts and the seed alone.

        Raises:
            UsageError: this kind of tokenizer has one way only to split a text.
        """
        raise UsageError(
            f'tokenizer.kind = "{self.kind}" has no subword sampling. '
            'Use kind = "bpe" or "unigram", or tokenizer.sampling = 0.'
        )

    def spellings(self, text: str, most: int) -> list[list[int]]:
        """Ways in which ids spell a text that begins at the beginning of a word: the usual one, then others.

        Args:
            text: any.
            most: how many at most, those of the fewest ids first.
        """
        return self.encode([text])

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Text of the ids: padding, begin and end marks left out, an unknown symbol shown as ``<unk>``.

        Raises:
            UsageError: an id is outside the vocabulary.
        """

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One readable piece an id; a blank shows as ``▁``, a byte as ``<0xEA>``.

        Raises:
            UsageError: an id is outside the vocabulary.
        """

    @abstractmethod
    def to_bytes(self) -> bytes:
        """What `load_tokenizer` makes this tokenizer from again."""

    @cached_property
    def sha256(self) -> str:
        """Hexadecimal digest of `to_bytes`: equal vocabularies have equal digests."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def prepare(self, texts: Sequence[str]) -> list[str]:
        """Normalise the texts, and lower-case them when configured so.

        Raises:
            UsageError: one string was given in the place of a list of them.
        """
        self.refuse_string(texts)
        normal = [unify(text) if self.keep_space else normalize(text) for text in texts]
        return [lower(text) for text in normal] if self.lowercase else normal

    def refuse_string(self, texts: Sequence[str]) -> None:
        """Raise `UsageError` for one string, which would pass for a list of its characters."""
        if isinstance(texts, str):
            raise UsageError("the tokenizer takes a list of texts, not one text. Use encode([text])[0].")

    def check(self, ids: Sequence[int]) -> list[int]:
        """The ids as plain integers; raises `UsageError` when one is outside the vocabulary."""
        plain = [int(i) for i in ids]
        wrong = next((i for i in plain if not 0 <= i < self.size), None)
        if wrong is not None:
            raise UsageError(
                f"token id {wrong} is outside this vocabulary of {self.size} (0 to {self.size - 1}). "
                "Were the ids made by another tokenizer?"
            )
        return plain
