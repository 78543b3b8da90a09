"""Weights and tokenizer that a training begins with instead of chance: those of another run."""

from __future__ import annotations

from pathlib import Path

import torch

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.errors import RunError
from manyheads.model.transformer import Transformer
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.log import Listener

__all__ = ["take_tokenizer", "take_weights"]

HEADS = ("output.", "pooler.", "transform.", "transform_norm.")  # what belongs to a task, and not to the encoder


def take_tokenizer(config: Config) -> TokenizerPair:
    """The tokenizers of the run that `model.init_from` names.

    Raises:
        RunError: it is no run, or its tokenizer is of another kind than the configuration's.
    """
    run = origin(config)
    theirs, ours = run.config().tokenizer, config.tokenizer
    for key, there, here in (
        ("kind", theirs.kind, ours.kind),
        ("lowercase", theirs.lowercase, ours.lowercase),
    ):
        if there != here:
            raise RunError(
                f"{run.path} has tokenizer.{key} = {there!r}, and this configuration {here!r}. Its weights know "
                f"its tokens only: give the same tokenizer.{key}."
            )
    return run.tokenizers(run.config())


def take_weights(model: Transformer, config: Config, listener: Listener) -> None:
    """Put the weights of the run that `model.init_from` names into a model, all but those of its head.

    Raises:
        RunError: it is no run, or a weight of the encoder has another shape there; it is named.
    """
    run = origin(config)
    tensors, own = run.weights(), dict(model.named_parameters())
    taken = [name for name in own if name in tensors and not name.startswith(HEADS)]
    for name in taken:
        here, there = tuple(own[name].shape), tuple(tensors[name].shape)
        if here != there:
            raise RunError(
                f"{name} is {there} in {run.path}, but {here} here. Give the same [model] settings as that run."
            )
    new = [name for name in own if name not in taken]
    missing = [name for name in new if not name.startswith(HEADS)]
    if missing or not taken:
        raise RunError(
            f"{run.path} has no {', '.join(missing[:5]) or 'weight that fits'}{', ...' if missing[5:] else ''}. "
            "Give the same [model] settings as that run."
        )
    with torch.no_grad():
        for name in taken:
            own[name].copy_(tensors[name])
    unused = sorted(tensors.keys() - set(taken))
    listener.message(
        f"from {run.path}: {len(taken)} tensors taken; new: {', '.join(new) or 'none'}; "
        f"not used: {', '.join(unused) or 'none'}"
    )


def origin(config: Config) -> RunDirectory:
    """The run to begin with."""
    assert config.model.init_from is not None
    return RunDirectory.existing(Path(config.model.init_from))
