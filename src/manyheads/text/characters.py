"""Define character and byte tokenizers: one id for each character, or for each byte of UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Self

from manyheads.config.schema import TokenizerConfig
from manyheads.text.interface import CONTROL_IDS, SPECIALS, UNK, Tokenizer, lower
from manyheads.text.normalize import normalize, normalize_target, unify
from manyheads.text.vocabulary import Stored, SymbolTokenizer, count_symbols


class CharacterTokenizer(SymbolTokenizer):
    """Tokenizer with one id for each Unicode character.

    Characters seen less than ``tokenizer.min_count`` times are unknown.
    """

    kind = "characters"
    separator = ""

    @classmethod
    def train(
        cls, config: TokenizerConfig, texts: Iterable[str], languages: str, *, keep_space: bool = False
    ) -> Self:
        """Count the characters of the texts."""
        normal = map(unify if keep_space else normalize_target if config.normal_form else normalize, texts)
        characters = chain.from_iterable(map(lower, normal) if config.lowercase else normal)
        symbols = count_symbols(characters, min_count=config.min_count, languages=languages)
        return cls(symbols, languages, lowercase=config.lowercase, keep_space=keep_space)

    @classmethod
    def load(cls, data: bytes, language: str, *, keep_space: bool = False) -> Self:
        """Load a tokenizer from the bytes of `to_bytes`; raises `RunError`."""
        stored = Stored.from_bytes(data, kind=cls.kind, language=language)
        return cls(stored.symbols, stored.languages, lowercase=stored.lowercase, keep_space=keep_space)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each normalised text, one id for each character."""
        return [[self.ids.get(character, UNK) for character in text] for text in self.prepare(texts)]


class ByteTokenizer(Tokenizer):
    """Tokenizer with one id for each byte of UTF-8, after the special symbols: 260 ids that spell any text."""

    kind = "bytes"

    @classmethod
    def load(cls, data: bytes, language: str, *, keep_space: bool = False) -> Self:
        """Load a tokenizer from the bytes of `to_bytes`; raises `RunError`."""
        lowercase = Stored.from_bytes(data, kind=cls.kind, language=language).lowercase
        return cls(lowercase=lowercase, keep_space=keep_space)

    @property
    def size(self) -> int:
        """Vocabulary size: 260."""
        return len(SPECIALS) + 256

    @cached_property
    def byte_values(self) -> Mapping[int, int]:
        """Return the byte of each id but those of the special symbols."""
        return {byte + len(SPECIALS): byte for byte in range(256)}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each normalised text, one id for each byte."""
        return [[byte + len(SPECIALS) for byte in text.encode()] for text in self.prepare(texts)]

    def decode(self, ids: Sequence[int]) -> str:
        """Decode the bytes; bytes that form no character are left out."""
        parts = (
            SPECIALS[i].encode() if i < len(SPECIALS) else bytes([i - len(SPECIALS)])
            for i in self.whole_characters(self.check(ids))[0]
            if i not in CONTROL_IDS
        )
        return b"".join(parts).decode(errors="ignore")  # a symbol between two bytes

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return each byte as ``<0xEA>``."""
        return [SPECIALS[i] if i < len(SPECIALS) else f"<0x{i - len(SPECIALS):02X}>" for i in self.check(ids)]

    def to_bytes(self) -> bytes:
        """Return the content of the JSON file, which has no vocabulary."""
        return Stored(kind="bytes", lowercase=self.lowercase).to_bytes()
