"""The configuration of a training that goes on from another model: that one's shape and vocabulary have the say."""

from __future__ import annotations

from typing import Any

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import parse_config
from manyheads.config.schema import Config, TokenizerConfig
from manyheads.runs.origins.interface import HEAD, SHAPE
from manyheads.runs.origins.opening import open_origin
from manyheads.training.log import Listener

__all__ = ["with_initial_shape"]


def with_initial_shape(config: Config, run: RunDirectory, listener: Listener) -> Config:
    """The configuration with the shape and the tokenizer of the model it goes on from, and tell what that changes.

    A run that has begun knows them itself: the other model need not be there any more.

    Raises:
        RunError: the other model is missing, cannot be read, or is for another kind of task.
        ConfigError: what is configured does not go with it.
    """
    if config.model.init_from is None:
        return config
    begun = run.config() if run.exists else None
    if begun is not None and begun.model.init_from == config.model.init_from:
        shape = {name: value for name, value in begun.model.model_dump().items() if name in SHAPE + HEAD}
        tokenizer = begun.tokenizer
    else:
        origin = open_origin(config)
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
    """A value as a configuration has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def tokenizer_settings(config: Config, theirs: TokenizerConfig) -> dict[str, Any]:
    """The settings of the vocabulary: those of the origin, unless it is replaced."""
    if config.model.init_vocabulary == "replace":
        return config.tokenizer.model_dump()
    if theirs.kind in ("bpe", "unigram"):  # how text is split while training is no part of the model
        theirs = theirs.model_copy(update={"sampling": config.tokenizer.sampling})
    return theirs.model_dump()
