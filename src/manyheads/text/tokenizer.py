"""Tokenizers by their configuration: trained from text, or read from bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manyheads.config.schema import TokenizerConfig
from manyheads.errors import ConfigError
from manyheads.text.characters import ByteTokenizer, CharacterTokenizer
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.interface import BOS, EOS, PAD, SPECIALS, UNK, Tokenizer
from manyheads.text.marian import MarianTokenizer
from manyheads.text.subwords import SubwordTokenizer
from manyheads.text.vocabulary import damaged
from manyheads.text.words import WordTokenizer

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "SPECIALS",
    "UNK",
    "Tokenizer",
    "TokenizerPair",
    "load_tokenizer",
    "train_tokenizer",
    "train_tokenizers",
]


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of the two languages; each text goes through that of its own side.

    Attributes:
        joint: both are the same object, and share one vocabulary.
    """

    source: Tokenizer
    target: Tokenizer
    joint: bool

    def __post_init__(self) -> None:
        if self.joint and self.source is not self.target:
            raise ValueError("a joint pair has one tokenizer on both sides")


def train_tokenizers(
    config: TokenizerConfig,
    sources: Sequence[str],
    targets: Sequence[str],
    source_language: str,
    target_language: str,
) -> TokenizerPair:
    """Make the tokenizers of both languages from training text: one for both when ``config.joint``.

    The kind ``bytes`` needs no training, and is the same for every language.

    Raises:
        DataError: there is no text.
        ConfigError: the text does not allow ``vocab_size`` or ``min_count``.
        MissingExtraError: ``words`` without spaCy.
    """
    if config.joint or config.kind == "bytes":
        both = source_language
        if target_language != source_language:
            both = f"{source_language}+{target_language}"
        tokenizer = train_tokenizer(config, [*sources, *targets], both)
        return TokenizerPair(tokenizer, tokenizer, joint=True)
    source = train_tokenizer(config, sources, source_language)
    return TokenizerPair(source, train_tokenizer(config, targets, target_language), joint=False)


def train_tokenizer(config: TokenizerConfig, texts: Sequence[str], languages: str) -> Tokenizer:
    """One tokenizer from the texts of one language, or of two (``de+en``); raises as `train_tokenizers`."""
    match config.kind:
        case "bpe" | "unigram":
            return SubwordTokenizer.train(config, texts, languages)
        case "words":
            return WordTokenizer.train(config, texts, languages)
        case "characters":
            return CharacterTokenizer.train(config, texts, languages)
        case "bytes":
            return ByteTokenizer(lowercase=config.lowercase, keep_space=config.keep_space)
        case "marian" | "huggingface":
            raise ConfigError(
                [f'tokenizer.kind = "{config.kind}" comes with an imported model. Name it in model.init_from.']
            )


def load_tokenizer(config: TokenizerConfig, language: str, data: bytes) -> Tokenizer:
    """The tokenizer whose `Tokenizer.to_bytes` gave these bytes.

    Args:
        config: what it was trained with.
        language: the side it is for; a tokenizer stored for another language is refused where that can be seen.
        data: the content of its file.

    Raises:
        RunError: the bytes are damaged, or hold a tokenizer of another kind, language or case.
        MissingExtraError: ``words`` without spaCy.
    """
    loaded: Tokenizer
    match config.kind:
        case "bpe" | "unigram":
            loaded = SubwordTokenizer(config, data)
        case "words":
            loaded = WordTokenizer.load(data, language)
        case "characters":
            loaded = CharacterTokenizer.load(data, language, keep_space=config.keep_space)
        case "bytes":
            loaded = ByteTokenizer.load(data, language, keep_space=config.keep_space)
        case "marian":
            loaded = MarianTokenizer.load(data)
        case "huggingface":
            loaded = HuggingFaceTokenizer.load(data, keep_space=config.keep_space)
    if loaded.lowercase != config.lowercase:
        raise damaged(
            config.kind, f"lowercase is {loaded.lowercase} in it, {config.lowercase} in the configuration"
        )
    return loaded
