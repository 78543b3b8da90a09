"""The weights of a training that goes on from another model: which are taken, changed in size, or new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from manyheads.config.schema import Config, Task
from manyheads.errors import RunError
from manyheads.model.transformer import Transformer
from manyheads.runs.origins.interface import Origin
from manyheads.runs.origins.opening import open_origin
from manyheads.text.tokenizer import Tokenizer, TokenizerPair
from manyheads.training.log import Listener

__all__ = ["take_weights"]

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
    """What became of the weights, by name.

    Attributes:
        whole: as they were.
        resized: rows of tokens, with what became of them.
        new: by chance, as in every new model.
    """

    whole: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


def take_weights(
    model: Transformer, config: Config, tokenizers: TokenizerPair, labels: Sequence[str], listener: Listener
) -> None:
    """Put the weights of the model that `model.init_from` names into a new one, and tell what became of them.

    Args:
        model: new, on the CPU.
        config: of the run.
        tokenizers: of the run.
        labels: the classes that a classifier is to tell apart, in order.
        listener: who is told.

    Raises:
        RunError: a weight is missing there, has another shape, or is no number; it is named.
    """
    origin = open_origin(config)
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


def usable(origin: Origin, config: Config, labels: Sequence[str]) -> Mapping[str, Tensor]:
    """The weights that can be taken: of a head for classes only what fits these classes and this pooling."""
    found = dict(origin.tensors(config.task))
    if config.task != "classification":
        return found
    if not same_labels(origin.labels, labels):
        found = {name: tensor for name, tensor in found.items() if not name.startswith("output.")}
    if {"pooling": config.model.pooling, "pooler": config.model.pooler} != origin.pooled:
        found = {name: tensor for name, tensor in found.items() if not name.startswith("pooler.")}
    return found


def same_labels(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Whether both are the same classes in the same order; transformers calls class 0 LABEL_0 by itself."""
    plain = [name.removeprefix("LABEL_") for name in theirs]
    return bool(theirs) and (list(theirs) == list(ours) or plain == list(ours))


def rows_of(side: str, ours: TokenizerPair, theirs: TokenizerPair, vocabulary: str) -> list[int]:
    """For each id of ours that of theirs: the same where it was extended, else that spelt alike; -1 is none."""
    own, other = (pair.source if side == "source" else pair.target for pair in (ours, theirs))
    if vocabulary == "extend":
        return [i if i < other.size else -1 for i in range(own.size)]
    known = {piece: i for i, piece in reversed(list(enumerate(all_pieces(other))))}
    return [known.get(piece, -1) for piece in all_pieces(own)]


def all_pieces(tokenizer: Tokenizer) -> list[str]:
    """The pieces of a vocabulary."""
    return tokenizer.pieces(range(tokenizer.size))


def copy_rows(name: str, own: Tensor, tensor: Tensor, rows: Sequence[int]) -> str:
    """Copy the rows of the tokens that both know; returns what became of them, for people."""
    if tensor.shape[1:] != own.shape[1:] or len(rows) != len(own):
        raise RunError(f"{name} is {tuple(tensor.shape)} there, but {tuple(own.shape)} here.")
    known = [place for place, row in enumerate(rows) if row >= 0]
    own[known] = tensor[[rows[place] for place in known]].to(own)
    return f"{name} ({len(known):,} rows taken, {len(rows) - len(known):,} new, {len(tensor):,} there)"


def check_missing(taken: Taken, origin: Origin, task: Task) -> None:
    """Raise `RunError` where more than a head is new."""
    missing = [name for name in taken.new if not name.startswith(HEADS[task])] if HEADS[task] else taken.new
    if missing or not taken.whole:
        raise RunError(f"{origin.where} has no {shortened(missing) if missing else 'weight that fits'}.")


def shortened(names: Iterable[str]) -> str:
    """The first of some names, for a message."""
    found = list(names)
    return ", ".join(found[:MOST_NAMED]) + (", ..." if len(found) > MOST_NAMED else "") if found else "none"
