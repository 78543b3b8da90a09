"""Training that goes on from another model (`model.init_from`): its weights, tokenizers and shape."""

from __future__ import annotations

from manyheads.checkpoint import RunDirectory, load_weights
from manyheads.config.schema import Config, TokenizerConfig
from manyheads.interop.opened import OpenedModel
from manyheads.interop.sources import open_model
from manyheads.model.transformer import Transformer
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.log import Listener

__all__ = ["initial_tokenizers", "load_initial", "with_initial_shape"]

# What the weights dictate; dropout and the like stay as configured.
SHAPE = (
    "d_model",
    "d_ff",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "norm",
    "norm_epsilon",
    "positions",
    "max_positions",
    "activation",
    "tied_embeddings",
    "scale_embeddings",
    "bias",
    "token_types",
    "embedding_norm",
)


def opened(config: Config) -> OpenedModel:
    """The model that training goes on from."""
    assert config.model.init_from is not None
    return open_model(config.model.init_from, source=config.data.source, target=config.data.target)


def with_initial_shape(config: Config, run: RunDirectory, listener: Listener) -> Config:
    """The configuration with the shape and the tokenizer of the model it goes on from, and tell what that changes.

    A run that has begun knows them itself: the other model need not be there any more.

    Raises:
        RunError: the other model is missing or cannot be read.
    """
    if config.model.init_from is None:
        return config
    other = run.config() if run.exists else None
    if other is None or other.model.init_from != config.model.init_from:
        other = opened(config).config
    shape = {name: value for name, value in other.model.model_dump().items() if name in SHAPE}
    asked = config.model.model_dump()
    changed = [f"{name} = {value}" for name, value in shape.items() if asked[name] != value]
    if changed:
        listener.message(f"as in {config.model.init_from}: {', '.join(changed)}")
    tokenizer = other.tokenizer
    if tokenizer.kind in ("bpe", "unigram"):  # how text is split while training is no part of the model
        tokenizer = tokenizer.model_copy(update={"sampling": config.tokenizer.sampling})
    return Config.model_validate(
        config.model_dump() | {"model": asked | shape, "tokenizer": TokenizerConfig.model_dump(tokenizer)}
    )


def initial_tokenizers(config: Config) -> TokenizerPair:
    """The tokenizers of the model that training goes on from."""
    return opened(config).tokenizers


def load_initial(config: Config, run: RunDirectory, model: Transformer) -> None:
    """Give a model the weights it goes on from, unless the run has checkpoints of its own."""
    if config.model.init_from is not None and not run.checkpoints.steps():
        theirs = dict(opened(config).model.named_parameters())
        load_weights(model, theirs, config.model.init_from)
