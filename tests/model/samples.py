"""Small models whose weights are all at work, and random ids for them.

Axis sizes are distinct primes where the model allows it. A fresh model hides faults: its biases are zero, its
norms the identity, its attention nearly even, its padding row zero. `scramble` undoes all that.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.config.schema import ModelConfig
from manyheads.model.encoder_decoder import EncoderDecoder

UNK, PAD, BOS, EOS = 0, 1, 2, 3
SOURCE_SIZE, TARGET_SIZE = 53, 47

Variant = dict[str, Any]

# Every value of every setting that changes the computation, each beside several values of the others.
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


def make_config(**changes: Any) -> ModelConfig:
    """D = 30 in 3 heads of 10, F = 37, 2 + 3 layers, no dropout, unless changed."""
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
    """A model as training starts with it."""
    torch.manual_seed(seed)
    config = make_config(**changes)
    source_size = TARGET_SIZE if config.tied_embeddings == "all" else SOURCE_SIZE
    return EncoderDecoder(config, source_size, TARGET_SIZE, pad=PAD)


def scrambled_model(seed: int = 1, **changes: Any) -> EncoderDecoder:
    """A model with weights as after training: float64, not training."""
    model = fresh_model(seed, **changes).double().eval()
    scramble(model)
    return model


@torch.no_grad()
def scramble(module: nn.Module) -> None:
    """Give biases, norms and the rows of padding something to do, and attention a preference."""
    for parameter in filter(lambda one: one.requires_grad, module.parameters()):
        if parameter.dim() == 1:
            parameter += 0.3 * torch.randn_like(parameter)
        else:
            parameter *= 1.5
    for part in module.modules():
        if isinstance(part, nn.Embedding) and part.padding_idx is not None:
            part.weight[part.padding_idx] = torch.randn_like(part.weight[part.padding_idx])


def random_ids(rows: int, length: int, size: int, seed: int = 2) -> Tensor:
    """Ids of ordinary tokens: (rows, length)."""
    return torch.randint(EOS + 1, size, (rows, length), generator=torch.Generator().manual_seed(seed))


def source_and_target(
    model: EncoderDecoder, rows: int = 5, source: int = 11, target: int = 7
) -> tuple[Tensor, Tensor]:
    """Ids without padding: (rows, source), and after a begin mark (rows, target)."""
    source_size = model.source_embedding.tokens.num_embeddings
    ids = random_ids(rows, target, model.output.out_features, seed=3)
    ids[:, 0] = BOS
    return random_ids(rows, source, source_size), ids


def paper_signal(position: int, column: int, width: int) -> float:
    """One entry of the positional encoding, as section 3.5 writes it."""
    angle = position / 10_000 ** ((column - column % 2) / width)
    return math.cos(angle) if column % 2 else math.sin(angle)
