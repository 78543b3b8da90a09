"""Shape, vocabulary and weights of a training that starts from another model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import parse_config
from manyheads.config.schema import Config, Task, TokenizerConfig
from manyheads.errors import RunError
from manyheads.model.transformer import Transformer
from manyheads.runs.pretrained import HEAD, SHAPE, Pretrained, open_pretrained
from manyheads.text.characters import CharacterTokenizer
from manyheads.text.tokenizer import Tokenizer, TokenizerPair
from manyheads.text.vocabulary import SymbolTokenizer
from manyheads.text.words import WordTokenizer
from manyheads.training.log import Listener

__all__ = ["initial_tokenizers", "take_weights", "with_initial_shape"]


def with_initial_shape(config: Config, run: RunDirectory, listener: Listener) -> Config:
    """Return the configuration with the shape and the tokenizer of `model.init_from`, and report the changes.

    A run that has begun has them in its own configuration: the other model is no longer needed.

    Raises:
        RunError: the other model is missing, cannot be read, or is for another task.
        ConfigError: the configuration contradicts the other model.
    """
    if config.model.init_from is None:
        return config
    begun = run.config() if run.exists else None
    if begun is not None and begun.model.init_from == config.model.init_from:
        shape = {name: value for name, value in begun.model.model_dump().items() if name in SHAPE + HEAD}
        tokenizer = begun.tokenizer
    else:
        origin = open_pretrained(config)
        shape, tokenizer = dict(origin.shape), origin.tokenizer_config
    asked = config.model.model_dump()
    changed = [f"{name} = {shown(value)}" for name, value in shape.items() if asked[name] != value]
    settings = tokenizer_settings(config, tokenizer)
    if settings["kind"] != config.tokenizer.kind:
        changed.append(f"tokenizer.kind = {settings['kind']}")
    if changed:
        listener.message(f"as in {config.model.init_from}: {', '.join(changed)}")
    values = config.model_dump(mode="json") | {"model": asked | shape, "tokenizer": settings}
    return parse_config(values, origin=f"with model.init_from = {config.model.init_from}")


def shown(value: object) -> str:
    """Format a value as in a configuration."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def tokenizer_settings(config: Config, theirs: TokenizerConfig) -> dict[str, Any]:
    """Return the tokenizer settings: those of the other model, unless its vocabulary is replaced."""
    if config.model.init_vocabulary == "replace":
        return config.tokenizer.model_dump()
    if theirs.kind in ("bpe", "unigram"):  # how text is split while training is no part of the model
        theirs = theirs.model_copy(update={"sampling": config.tokenizer.sampling})
    return theirs.model_dump()


Sides = tuple[Sequence[str], Sequence[str]]


def initial_tokenizers(
    config: Config, learn: Callable[[], TokenizerPair], sides: Callable[[], Sides], listener: Listener
) -> TokenizerPair:
    """Return the tokenizers that a training starts with (`model.init_vocabulary`).

    Args:
        config: configuration of the run after `with_initial_shape`.
        learn: trains new tokenizers on the training text.
        sides: source and target texts of the training; no targets for tasks other than translation.
        listener: receives messages.

    Raises:
        RunError: the vocabulary of the other model is damaged, or cannot be extended.
    """
    if config.model.init_vocabulary == "replace":
        return learn()
    kept = open_pretrained(config).tokenizers
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
    """Extend a symbol tokenizer by the new symbols of texts.

    Raises:
        RunError: the tokenizer is of another kind.
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


# The weights that belong to a task, and not to the encoder: they may be new.
HEADS: dict[Task, tuple[str, ...]] = {
    "translation": (),
    "language-modeling": (),
    "classification": ("pooler.", "output."),
    "masked-lm": ("transform.", "transform_norm.", "output."),
}
# The weights that have a row for each token, and whose side's.
ROWS: dict[Task, dict[str, str]] = {
    "translation": {
        "source_embedding.tokens.weight": "source",
        "target_embedding.tokens.weight": "target",
        "output.weight": "target",
        "output.bias": "target",
    },
    "language-modeling": {"embedding.tokens.weight": "target", "output.weight": "target"},
    "classification": {"embedding.tokens.weight": "source"},
    "masked-lm": {
        "embedding.tokens.weight": "source",
        "output.weight": "source",
        "output.bias": "source",
    },
}
MOST_NAMED = 5


@dataclass
class Taken:
    """Names of the weights by what was done with them.

    Attributes:
        whole: copied unchanged.
        resized: copied row by row, with a description.
        new: initialised randomly.
    """

    whole: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


def take_weights(
    model: Transformer, config: Config, tokenizers: TokenizerPair, labels: Sequence[str], listener: Listener
) -> None:
    """Copy the weights of `model.init_from` into a new model, and report what was copied.

    Args:
        model: new model on the CPU.
        config: configuration of the run.
        tokenizers: tokenizers of the run.
        labels: classes of a classifier, in order.
        listener: receives messages.

    Raises:
        RunError: a weight is missing, has another shape, or is not finite; the message names it.
    """
    origin = open_pretrained(config)
    theirs = usable(origin, config, labels)
    taken = Taken()
    with torch.no_grad():
        for name, own in model.named_parameters():
            tensor = theirs.get(name)
            if tensor is None:
                taken.new.append(name)
                continue
            if not tensor.isfinite().all():
                raise RunError(f"{origin.where} is damaged: {name} holds values that are not finite. Use another.")
            side = ROWS[config.task].get(name) if config.model.init_vocabulary != "keep" else None
            if side is not None:
                rows = rows_of(side, tokenizers, origin.tokenizers, config.model.init_vocabulary)
                taken.resized.append(copy_rows(name, own, tensor, rows))
            elif tensor.shape != own.shape:
                raise RunError(f"{name} is {tuple(tensor.shape)} in {origin.where}, but {tuple(own.shape)} here.")
            else:
                own.copy_(tensor)
                taken.whole.append(name)
    check_missing(taken, origin, config.task)
    every = {*origin.tensors(config.task), *origin.unused(config.task)}
    left = sorted(every - {*taken.whole} - {name for name in ROWS[config.task] if name in theirs})
    listener.message(
        f"from {origin.where}: {len(taken.whole)} tensors taken; "
        + (f"resized: {'; '.join(taken.resized)}; " if taken.resized else "")
        + f"new: {', '.join(taken.new) or 'none'}; not used: {shortened(left)}"
    )


def usable(origin: Pretrained, config: Config, labels: Sequence[str]) -> Mapping[str, Tensor]:
    """Return the weights that can be copied: of a classification head only if labels and pooling are the same."""
    found = dict(origin.tensors(config.task))
    if config.task != "classification":
        return found
    if not same_labels(origin.labels, labels):
        found = {name: tensor for name, tensor in found.items() if not name.startswith("output.")}
    if {"pooling": config.model.pooling, "pooler": config.model.pooler} != origin.pooled:
        found = {name: tensor for name, tensor in found.items() if not name.startswith("pooler.")}
    return found


def same_labels(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether both have the same classes in the same order; LABEL_0 is the default name in transformers."""
    plain = [name.removeprefix("LABEL_") for name in theirs]
    return bool(theirs) and (list(theirs) == list(ours) or plain == list(ours))


def rows_of(side: str, ours: TokenizerPair, theirs: TokenizerPair, vocabulary: str) -> list[int]:
    """Return the original id of each of our ids: the same if extended, else that of an equal piece; -1 is none."""
    own, other = (pair.source if side == "source" else pair.target for pair in (ours, theirs))
    if vocabulary == "extend":
        return [i if i < other.size else -1 for i in range(own.size)]
    known = {piece: i for i, piece in reversed(list(enumerate(all_pieces(other))))}
    return [known.get(piece, -1) for piece in all_pieces(own)]


def all_pieces(tokenizer: Tokenizer) -> list[str]:
    """Return the pieces of a vocabulary."""
    return tokenizer.pieces(range(tokenizer.size))


def copy_rows(name: str, own: Tensor, tensor: Tensor, rows: Sequence[int]) -> str:
    """Copy the rows of the tokens in both vocabularies; return a description."""
    if tensor.shape[1:] != own.shape[1:] or len(rows) != len(own):
        raise RunError(f"{name} is {tuple(tensor.shape)} there, but {tuple(own.shape)} here.")
    known = [place for place, row in enumerate(rows) if row >= 0]
    own[known] = tensor[[rows[place] for place in known]].to(own)
    return f"{name} ({len(known):,} rows taken, {len(rows) - len(known):,} new, {len(tensor):,} there)"


def check_missing(taken: Taken, origin: Pretrained, task: Task) -> None:
    """Raise `RunError` if more than a head would be new."""
    missing = [name for name in taken.new if not name.startswith(HEADS[task])] if HEADS[task] else taken.new
    if missing or not taken.whole:
        raise RunError(f"{origin.where} has no {shortened(missing) if missing else 'weight that fits'}.")


def shortened(names: Iterable[str]) -> str:
    """Return the first of some names, for a message."""
    found = list(names)
    return ", ".join(found[:MOST_NAMED]) + (", ..." if len(found) > MOST_NAMED else "") if found else "none"
