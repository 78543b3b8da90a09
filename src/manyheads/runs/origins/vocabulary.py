"""The vocabulary of a training that goes on from another model: kept, extended, or another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from manyheads.config.schema import Config
from manyheads.errors import RunError
from manyheads.runs.origins.opening import open_origin
from manyheads.text.characters import CharacterTokenizer
from manyheads.text.tokenizer import Tokenizer, TokenizerPair
from manyheads.text.vocabulary import SymbolTokenizer
from manyheads.text.words import WordTokenizer
from manyheads.training.log import Listener

__all__ = ["initial_tokenizers"]

Sides = tuple[Sequence[str], Sequence[str]]


def initial_tokenizers(
    config: Config, learn: Callable[[], TokenizerPair], sides: Callable[[], Sides], listener: Listener
) -> TokenizerPair:
    """The tokenizers that a training begins with (`model.init_vocabulary`).

    Args:
        config: of the run, with the settings of its vocabulary (`with_initial_shape`).
        learn: makes new ones from the text of the training.
        sides: source and target texts of the training; where nothing is translated, no targets.
        listener: who is told.

    Raises:
        RunError: the vocabulary of the other model is damaged, or of a kind that cannot be extended.
    """
    if config.model.init_vocabulary == "replace":
        return learn()
    kept = open_origin(config).tokenizers
    if config.model.init_vocabulary == "keep":
        return kept
    sources, targets = sides()
    if kept.joint:
        both = extended(kept.source, config, [*sources, *targets], listener)
        return TokenizerPair(both, both, joint=True)
    return TokenizerPair(
        extended(kept.source, config, sources, listener),
        extended(kept.target, config, targets, listener),
        joint=False,
    )


def extended(tokenizer: Tokenizer, config: Config, texts: Sequence[str], listener: Listener) -> Tokenizer:
    """A tokenizer of symbols with the new ones of texts behind its own.

    Raises:
        RunError: it is of another kind.
    """
    trained: SymbolTokenizer
    if isinstance(tokenizer, WordTokenizer):
        trained = WordTokenizer.train(config.tokenizer, texts, tokenizer.languages)
    elif isinstance(tokenizer, CharacterTokenizer):
        trained = CharacterTokenizer.train(config.tokenizer, texts, tokenizer.languages)
    else:
        raise RunError(
            f'model.init_vocabulary = "extend" is for words and characters; {config.model.init_from} has '
            f'tokenizer.kind = "{tokenizer.kind}", which spells new words with its pieces. Use "keep" or "replace".'
        )
    new = [symbol for symbol in trained.vocabulary.ids if symbol not in tokenizer.vocabulary.ids]
    listener.message(f"vocabulary: {tokenizer.size:,} symbols kept, {len(new):,} new")
    return tokenizer.extended(new)
