"""Define the word tokenizer: words and punctuation as spaCy splits them (extra ``words``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, Self

from bitext.languages import base_language
from manyheads.config.schema import TokenizerConfig
from manyheads.errors import require
from manyheads.text.interface import UNK, lower
from manyheads.text.normalize import clean, source_form
from manyheads.text.vocabulary import Stored, SymbolTokenizer, count_symbols, damaged_error

_MULTILINGUAL = "xx"

# spaCy takes more than a second for 4,000 brackets in a row, and four times that for twice as many.
_LONG_WORD = re.compile(r"(\S{200})(?=\S)")


def _word_splitter(language: str) -> tuple[str, Callable[[str], list[str]]]:
    """Return the name of the spaCy pipeline of a language, and its function from text to words of unchanged case.

    Only spaCy's rules are used (a blank pipeline), no trained model. If spaCy has none for the language, or they
    need another package (Korean, Japanese, Thai, Vietnamese), the multi-language rules ``xx`` are used: they split
    at blanks and punctuation. Words of more than 200 characters are cut.
    """
    spacy = require("spacy", extra="words", purpose='tokenizer.kind = "words"')
    try:
        pipeline = blank_pipeline(spacy, language)
    except ImportError:
        pipeline = spacy.blank(_MULTILINGUAL)

    def split(text: str) -> list[str]:
        return [token.text for token in pipeline.tokenizer(_LONG_WORD.sub(r"\1 ", clean(text)))]

    return pipeline.lang, split


def blank_pipeline(spacy: ModuleType, language: str) -> Any:
    """Return spaCy's rules for a language; raises `ImportError` if it has none, or they need another package."""
    try:
        return spacy.blank(re.split("[-_]", language)[0].lower())  # stored vocabularies name pipelines
    except ImportError:
        return spacy.blank(base_language(language))


class WordTokenizer(SymbolTokenizer):
    """Tokenizer with one id for each word; words seen less than ``tokenizer.min_count`` times are unknown.

    White space beyond one blank between words is a word, as in spaCy, if it is frequent enough in the training
    text; otherwise it is dropped. A joint vocabulary of two languages uses the multi-language rules. Words are
    lower-cased after the split, which uses capitals.
    """

    kind = "words"
    separator = " "

    def __init__(self, symbols: Iterable[str], languages: str, pipeline: str, *, lowercase: bool) -> None:
        super().__init__(symbols, languages, lowercase=lowercase)
        self.pipeline, self.split = _word_splitter(pipeline)

    @classmethod
    def train(cls, config: TokenizerConfig, texts: Iterable[str], languages: str) -> Self:
        """Count the words of the texts."""
        pipeline, split = _word_splitter(_MULTILINGUAL if "+" in languages else languages)
        words = (lower(word) if config.lowercase else word for text in texts for word in split(text))
        symbols = count_symbols(words, min_count=config.min_count, languages=languages)
        return cls(symbols, languages, pipeline, lowercase=config.lowercase)

    @classmethod
    def load(cls, data: bytes, language: str) -> Self:
        """Load from the bytes of `to_bytes`; raises `RunError`, and `MissingExtraError` without spaCy."""
        stored = Stored.from_bytes(data, kind=cls.kind, language=language)
        loaded = cls(stored.symbols, stored.languages, stored.pipeline, lowercase=stored.lowercase)
        if loaded.pipeline != stored.pipeline:
            raise damaged_error(
                cls.kind, f'its spaCy rules "{stored.pipeline}" need a package that is not installed'
            )
        return loaded

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode each text, one id for each word; white space that is not in the vocabulary is dropped."""
        self.refuse_string(texts)
        known = ((word for word in self.words(text) if word in self.ids or not word.isspace()) for text in texts)
        return [[self.ids.get(word, UNK) for word in words] for words in known]

    def words(self, text: str) -> list[str]:
        """Split one text into words, lower-cased if configured."""
        text = source_form(text) if self.side == "source" else text
        return [lower(word) for word in self.split(text)] if self.lowercase else self.split(text)
