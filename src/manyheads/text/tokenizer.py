"""Load tokenizers from bytes, by their configuration."""

from __future__ import annotations

from dataclasses import dataclass

from manyheads.config.schema import Config, TokenizerConfig
from manyheads.former_names import former_names
from manyheads.text.characters import ByteTokenizer, CharacterTokenizer
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.interface import BOS, EOS, PAD, SPECIALS, UNK, Side, Tokenizer
from manyheads.text.marian import MarianTokenizer
from manyheads.text.moses_bpe import MosesBpeTokenizer
from manyheads.text.subwords import SubwordTokenizer
from manyheads.text.vocabulary import damaged_error
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
]

__getattr__ = former_names(__name__, dict.fromkeys(("train_tokenizer", "train_tokenizers"), "text.training"))


@dataclass(frozen=True)
class TokenizerPair:
    """Tokenizers of source and target.

    Attributes:
        joint: whether both have one vocabulary.
    """

    source: Tokenizer
    target: Tokenizer
    joint: bool

    def __post_init__(self) -> None:
        if self.joint and self.source.sha256 != self.target.sha256:
            raise ValueError("a joint pair has one vocabulary on both sides")

    def with_normal_forms(self, config: Config) -> TokenizerPair:
        """Return the tokenizers with the normal forms of a run; every text that is only read is a source."""
        sides: tuple[Side, Side] = ("source", "target" if config.spec.decodes else "source")
        if not config.tokenizer.normal_form or config.keep_space:
            sides = "", ""
        return TokenizerPair(self.source.for_side(sides[0]), self.target.for_side(sides[1]), joint=self.joint)


def load_tokenizer(config: TokenizerConfig, language: str, data: bytes, *, keep_space: bool = False) -> Tokenizer:
    """Load a tokenizer from the bytes of `Tokenizer.to_bytes`.

    Args:
        config: configuration with which the tokenizer was trained.
        language: language of the side; a tokenizer that was stored for another language is refused.
        data: content of the file.
        keep_space: whether white space is kept (`Config.keep_space`).

    Raises:
        RunError: the bytes are damaged, or the tokenizer has another kind, language or case.
        MissingExtraError: the kind is ``words``, and spaCy is not installed.
    """
    loaded: Tokenizer
    match config.kind:
        case "bpe" | "unigram":
            loaded = SubwordTokenizer(config, data, keep_space=keep_space)
        case "words":
            loaded = WordTokenizer.load(data, language)
        case "characters":
            loaded = CharacterTokenizer.load(data, language, keep_space=keep_space)
        case "bytes":
            loaded = ByteTokenizer.load(data, language, keep_space=keep_space)
        case "marian":
            loaded = MarianTokenizer.load(data)
        case "moses-bpe":
            loaded = MosesBpeTokenizer.load(data)
        case "huggingface":
            loaded = HuggingFaceTokenizer.load(data, keep_space=keep_space)
    if loaded.lowercase != config.lowercase:
        raise damaged_error(
            config.kind, f"lowercase is {loaded.lowercase} in it, {config.lowercase} in the configuration"
        )
    return loaded
