"""Store tokenizers as JSON, and define the base of tokenizers whose vocabulary is a list of symbols."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from typing import ClassVar, Literal, Self

from manyheads.config.schema.base import Section, SettingsError
from manyheads.errors import ConfigError, DataError, RunError
from manyheads.text.interface import CONTROL_IDS, SPECIALS, Tokenizer


class StoredJson(Section):
    """The JSON file of a tokenizer that is not a SentencePiece model; equal content has equal bytes."""

    indent: ClassVar[int | None] = 0

    format: Literal["manyheads-tokenizer"] = "manyheads-tokenizer"
    version: Literal[1] = 1

    def to_bytes(self) -> bytes:
        """Return UTF-8 JSON."""
        return (json.dumps(self.model_dump(), ensure_ascii=False, indent=self.indent) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes, kind: str) -> Self:
        """Read the bytes of `to_bytes`; raises `RunError` if they are damaged, or of another version."""
        try:
            return cls(**json.loads(data))
        except (SettingsError, ValueError, TypeError, RecursionError) as error:
            raise damaged_error(kind, str(error)) from error


class Stored(StoredJson):
    """The JSON file of a tokenizer of words, characters or bytes.

    Attributes:
        lowercase: whether text is lower-cased.
        languages: languages of the training text, ``de`` or ``de+en``.
        pipeline: spaCy pipeline that splits text into words (words only).
        symbols: vocabulary without special symbols (words, characters).
    """

    kind: Literal["words", "characters", "bytes"]
    lowercase: bool
    languages: str = ""
    pipeline: str = ""
    symbols: tuple[str, ...] = ()

    def check_symbols(self) -> None:
        """Refuse a vocabulary with equal symbols."""
        if "" in self.symbols or len({*self.symbols, *SPECIALS}) != len(self.symbols) + len(SPECIALS):
            raise ValueError("a symbol is empty, special, or there twice")

    @classmethod
    def from_bytes(cls, data: bytes, *, kind: str, language: str) -> Self:
        """Read the bytes of `to_bytes`.

        Raises:
            RunError: the bytes are damaged, of another version, kind or language.
        """
        stored = cls.parse(data, kind)
        if stored.kind != kind:
            raise damaged_error(kind, f'it holds the kind "{stored.kind}"')
        if stored.languages and language not in stored.languages.split("+"):
            raise damaged_error(kind, f'it was made for "{stored.languages}", not for "{language}"')
        return stored


def count_symbols(occurrences: Iterable[str], *, min_count: int, languages: str) -> list[str]:
    """Return the symbols seen at least `min_count` times, but no special ones, by decreasing count, then in order.

    Raises:
        DataError: there are no symbols.
        ConfigError: no symbol occurs often enough.
    """
    counts = Counter(occurrences)
    for special in SPECIALS:
        counts.pop(special, None)
    if not counts:
        raise DataError(f"no text to make the vocabulary of {languages} from. Check data.train.")
    symbols = [symbol for symbol, count in counts.items() if count >= min_count]
    if not symbols:
        mistake = f"leaves no symbol of {languages}. Use at most {max(counts.values())}."
        raise ConfigError([f"tokenizer.min_count = {min_count} {mistake}"])
    return sorted(symbols, key=lambda symbol: (-counts[symbol], symbol))


class ListedTokenizer(Tokenizer):
    """A tokenizer with a list of symbols, given without special symbols; the first gets id 4.

    Attributes:
        symbols: symbols by id, the special ones first.
        ids: id of each symbol except special ones, so that the text ``<pad>`` is not padding.
    """

    def __init__(self, symbols: Iterable[str], *, lowercase: bool, keep_space: bool = False) -> None:
        super().__init__(lowercase=lowercase, keep_space=keep_space)
        self.symbols = (*SPECIALS, *symbols)
        self.ids = {symbol: i for i, symbol in enumerate(self.symbols) if i >= len(SPECIALS)}

    @property
    def size(self) -> int:
        """Vocabulary size, the special symbols included."""
        return len(self.symbols)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the symbols; a blank is shown as ``▁``."""
        return [self.symbols[i].replace(" ", "▁") for i in self.check(ids)]


class SymbolTokenizer(ListedTokenizer):
    """A tokenizer whose decoding joins the symbols with a separator.

    Attributes:
        languages: languages of the training text, ``de`` or ``de+en``.
        pipeline: spaCy pipeline that splits text into words (words only).
    """

    kind: Literal["words", "characters"]
    separator: str
    pipeline = ""

    def __init__(
        self, symbols: Iterable[str], languages: str, *, lowercase: bool, keep_space: bool = False
    ) -> None:
        super().__init__(symbols, lowercase=lowercase, keep_space=keep_space)
        self.languages = languages

    def extended(self, symbols: Iterable[str]) -> Self:
        """Return this tokenizer with further symbols added at the end."""
        longer = copy(self)
        longer.symbols = (*self.symbols, *symbols)
        longer.ids = self.ids | {symbol: i for i, symbol in enumerate(longer.symbols) if i >= self.size}
        longer.__dict__.pop("sha256", None)  # the cached digest of the shorter vocabulary
        return longer

    def decode(self, ids: Sequence[int]) -> str:
        """Join the symbols; words are always joined by blanks."""
        return self.separator.join(self.symbols[i] for i in self.check(ids) if i not in CONTROL_IDS)

    def to_bytes(self) -> bytes:
        """Return the content of the JSON file."""
        return Stored(
            kind=self.kind,
            lowercase=self.lowercase,
            languages=self.languages,
            pipeline=self.pipeline,
            symbols=self.symbols[len(SPECIALS) :],
        ).to_bytes()


def damaged_error(kind: str, reason: str) -> RunError:
    """Return the error for bytes that are not a tokenizer of this kind."""
    return RunError(
        f'the stored tokenizer (kind = "{kind}") cannot be used: {reason}. '
        "Restore its file from a copy, or train again."
    )
