"""A list of symbols with their ids, and the file of the tokenizers that are one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from manyheads.errors import ConfigError, DataError, RunError
from manyheads.text.interface import SILENT, SPECIALS, UNK, Tokenizer

__all__ = ["Stored", "SymbolTokenizer", "Vocabulary", "damaged"]


class Vocabulary:
    """Symbols and their ids; the four special symbols come first.

    Args:
        symbols: distinct, without the special ones; the first gets id 4.
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        self.symbols = (*SPECIALS, *symbols)
        self.ids = {symbol: i for i, symbol in enumerate(self.symbols) if i >= len(SPECIALS)}

    def __len__(self) -> int:
        return len(self.symbols)

    @classmethod
    def count(cls, occurrences: Iterable[str], *, min_count: int, languages: str) -> Self:
        """Number the symbols seen at least `min_count` times by falling count, then alphabetically.

        Raises:
            DataError: nothing occurs.
            ConfigError: nothing occurs often enough.
        """
        counts = Counter(occurrences)
        for special in SPECIALS:
            counts.pop(special, None)
        if not counts:
            raise DataError(f"no text to make the vocabulary of {languages} from. Check data.train.")
        kept = [symbol for symbol, count in counts.items() if count >= min_count]
        if not kept:
            raise ConfigError(
                [
                    f"tokenizer.min_count = {min_count} leaves no symbol of {languages}. "
                    f"Use at most {max(counts.values())}."
                ]
            )
        return cls(sorted(kept, key=lambda symbol: (-counts[symbol], symbol)))

    def id(self, symbol: str) -> int:
        """Id of a symbol, or UNK; text that reads ``<pad>`` is no padding."""
        return self.ids.get(symbol, UNK)


class Stored(BaseModel):
    """The file of a tokenizer that is no SentencePiece model: JSON, the same content in the same bytes.

    Attributes:
        lowercase: as configured when it was trained.
        languages: ``de`` or ``de+en``, the text it was trained on.
        pipeline: the spaCy pipeline that splits text into words (words only).
        symbols: the vocabulary without its special symbols (words, characters).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["manyheads-tokenizer"] = "manyheads-tokenizer"
    version: Literal[1] = 1
    kind: Literal["words", "characters", "bytes"]
    lowercase: bool
    languages: str = ""
    pipeline: str = ""
    symbols: tuple[str, ...] = ()

    @model_validator(mode="after")
    def check_symbols(self) -> Self:
        """Refuse a vocabulary whose ids would not be one to one."""
        if "" in self.symbols or len({*self.symbols, *SPECIALS}) != len(self.symbols) + len(SPECIALS):
            raise ValueError("a symbol is empty, special, or there twice")
        return self

    def to_bytes(self) -> bytes:
        """UTF-8 JSON, one symbol a line."""
        return (json.dumps(self.model_dump(), ensure_ascii=False, indent=0) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, *, kind: str, language: str) -> Self:
        """Read what `to_bytes` wrote.

        Raises:
            RunError: the bytes are damaged, of another version, kind or language.
        """
        try:
            stored = cls.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise damaged(kind, f"{'.'.join(map(str, first['loc'])) or 'content'}: {first['msg']}") from error
        if stored.kind != kind:
            raise damaged(kind, f'it holds the kind "{stored.kind}"')
        if stored.languages and language not in stored.languages.split("+"):
            raise damaged(kind, f'it was made for "{stored.languages}", not for "{language}"')
        return stored


class SymbolTokenizer(Tokenizer):
    """A tokenizer whose ids are the symbols of a `Vocabulary`, put together again with a separator.

    Attributes:
        languages: ``de`` or ``de+en``, the text it was trained on.
        pipeline: what splits text into words (words only).
    """

    kind: Literal["words", "characters"]
    separator: str
    pipeline = ""

    def __init__(
        self, vocabulary: Vocabulary, languages: str, *, lowercase: bool, keep_space: bool = False
    ) -> None:
        super().__init__(lowercase=lowercase, keep_space=keep_space)
        self.vocabulary = vocabulary
        self.languages = languages

    @property
    def size(self) -> int:
        """Number of symbols, the special ones included."""
        return len(self.vocabulary)

    def extended(self, symbols: Iterable[str]) -> Self:
        """The same with further symbols behind its own."""
        longer = copy(self)
        longer.vocabulary = Vocabulary((*self.vocabulary.symbols[len(SPECIALS) :], *symbols))
        longer.__dict__.pop("sha256", None)  # that of the shorter one, where it was asked for
        return longer

    def decode(self, ids: Sequence[int]) -> str:
        """The symbols put together; which of them stood without a blank between is not known of words."""
        return self.separator.join(self.vocabulary.symbols[i] for i in self.check(ids) if i not in SILENT)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The symbols; a blank shows as ``▁``."""
        return [self.vocabulary.symbols[i].replace(" ", "▁") for i in self.check(ids)]

    def to_bytes(self) -> bytes:
        """The content of its JSON file."""
        return Stored(
            kind=self.kind,
            lowercase=self.lowercase,
            languages=self.languages,
            pipeline=self.pipeline,
            symbols=self.vocabulary.symbols[len(SPECIALS) :],
        ).to_bytes()


def damaged(kind: str, reason: str) -> RunError:
    """The error for bytes that hold no such tokenizer."""
    return RunError(
        f'the stored tokenizer (kind = "{kind}") cannot be used: {reason}. '
        "Restore its file from a copy, or train again."
    )
