"""Small models in which every weight affects the output, and random ids for them.

Axis sizes are distinct primes where the model allows it. A fresh model hides faults: its biases are zero, its
norms the identity, its attention nearly uniform, its padding row zero. `scramble` changes all of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.config.schema import ModelConfig
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import TextClassifier

UNK, PAD, BOS, EOS = 0, 1, 2, 3
SOURCE_SIZE, TARGET_SIZE = 53, 47

Variant = dict[str, Any]

# Every value of every setting that changes the computation, combined with several values of the others.
VARIANTS: dict[str, Variant] = {
    "pre-sinusoidal-relu-all": {"norm": "pre", "positions": "sinusoidal", "tied_embeddings": "all"},
    "post-learned-relu-none": {"norm": "post", "positions": "learned", "tied_embeddings": "none"},
    "pre-rotary-swiglu-decoder-unbiased": {
        "norm": "pre",
        "positions": "rotary",
        "activation": "swiglu",
        "tied_embeddings": "decoder",
        "bias": False,
    },
    "post-sinusoidal-gelu-decoder-unbiased": {
        "norm": "post",
        "positions": "sinusoidal",
        "activation": "gelu",
        "tied_embeddings": "decoder",
        "bias": False,
    },
    "post-rotary-swiglu-none": {
        "norm": "post",
        "positions": "rotary",
        "activation": "swiglu",
        "tied_embeddings": "none",
    },
    "pre-learned-gelu-all-unscaled": {
        "norm": "pre",
        "positions": "learned",
        "activation": "gelu",
        "tied_embeddings": "all",
        "scale_embeddings": False,
    },
}

BERT = {
    "norm": "post", "positions": "learned", "activation": "gelu", "token_types": 2, "embedding_norm": True,
    "scale_embeddings": False, "norm_epsilon": 1e-12, "pooling": "cls",
}  # fmt: skip


def make_config(**changes: Any) -> ModelConfig:
    """Return a configuration; defaults: D = 30 in 3 heads of 10, F = 37, 2 + 3 layers, no dropout."""
    small: Variant = {
        "d_model": 30,
        "d_ff": 37,
        "num_heads": 3,
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "dropout": 0.0,
        "max_positions": 41,
    }
    return ModelConfig(**(small | changes))


def fresh_model(seed: int = 1, **changes: Any) -> EncoderDecoder:
    """Return a model with the initial weights of a training."""
    torch.manual_seed(seed)
    config = make_config(**changes)
    source_size = TARGET_SIZE if config.tied_embeddings == "all" else SOURCE_SIZE
    return EncoderDecoder(config, source_size, TARGET_SIZE, pad=PAD)


def scrambled_model(seed: int = 1, **changes: Any) -> EncoderDecoder:
    """Return a model in float64 and evaluation mode, with weights like those after training."""
    model = fresh_model(seed, **changes).double().eval()
    scramble(model)
    return model


def language_model(absent: Sequence[int] = (), **changes: Any) -> DecoderOnly:
    torch.manual_seed(3)
    model = DecoderOnly(make_config(**changes), TARGET_SIZE, absent=absent).eval()
    scramble(model)
    return model


def classifier(**changes: Any) -> TextClassifier:
    torch.manual_seed(4)
    model = TextClassifier(make_config(**changes), SOURCE_SIZE, 5).eval()
    scramble(model)
    return model


@torch.no_grad()
def scramble(module: nn.Module) -> None:
    """Change biases, norms and padding rows at random, and scale weights so that attention is not uniform."""
    for parameter in filter(lambda weight: weight.requires_grad, module.parameters()):
        if parameter.dim() == 1:
            parameter += 0.3 * torch.randn_like(parameter)
        else:
            parameter *= 1.5
    for inner in module.modules():
        if isinstance(inner, nn.Embedding) and inner.padding_idx is not None:
            inner.weight[inner.padding_idx] = torch.randn_like(inner.weight[inner.padding_idx])


@contextmanager
def scaled_heads(modules: Mapping[int, MultiHeadAttention], factors: np.ndarray) -> Iterator[None]:
    """Multiply the output of each head of a layer by its factor (L, H) inside the context."""

    def scale(layer: int) -> Any:
        row = torch.from_numpy(factors[layer])
        return lambda _, inputs: ((inputs[0].unflatten(-1, (len(row), -1)) * row[:, None]).flatten(-2),)

    hooks = [module.project_out.register_forward_pre_hook(scale(layer)) for layer, module in modules.items()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def random_ids(rows: int, length: int, size: int, seed: int = 2) -> Tensor:
    """Return random ids of ordinary tokens: (rows, length)."""
    return torch.randint(EOS + 1, size, (rows, length), generator=torch.Generator().manual_seed(seed))


def source_and_target(
    model: EncoderDecoder, rows: int = 5, source: int = 11, target: int = 7
) -> tuple[Tensor, Tensor]:
    """Return ids without padding: (rows, source), and (rows, target) that begin with BOS."""
    source_size = model.source_embedding.tokens.num_embeddings
    ids = random_ids(rows, target, model.output.out_features, seed=3)
    ids[:, 0] = BOS
    return random_ids(rows, source, source_size), ids


def paper_signal(position: int, column: int, width: int) -> float:
    """Return one entry of the positional encoding by the formula of section 3.5."""
    angle = position / 10_000 ** ((column - column % 2) / width)
    return math.cos(angle) if column % 2 else math.sin(angle)
