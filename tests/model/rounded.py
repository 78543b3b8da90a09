"""Models that compute in int8 as the decoder in C and the pages do, in exact sums of PyTorch."""

from __future__ import annotations

import copy
from functools import partial

import torch
from torch import Tensor, nn

from manyheads.inference.native.weights import quantize_int8
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.encoder_decoder import EncoderDecoder


def rounded_model(model: EncoderDecoder) -> EncoderDecoder:
    """Return a copy of a model that computes linear layers in int8, with token embeddings rounded to int8."""
    copied = copy.deepcopy(model)
    for name, part in copied.named_modules():
        if isinstance(part, nn.Linear):
            part.forward = partial(_apply_int8, *_quantize(part.weight), part.bias)  # type: ignore[method-assign]
        elif isinstance(part, nn.Embedding) and name.endswith("tokens"):
            integers, scale = _quantize(part.weight)
            part.weight = nn.Parameter((integers * scale[:, None]).to(part.weight.dtype), requires_grad=False)
        elif isinstance(part, MultiHeadAttention):
            part.project = partial(_project, part)  # type: ignore[method-assign]
    return copied


def _quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return a weight (O, I) as integers (O, I), in float64 for exact sums of their products, and scales (O,)."""
    integers, scale = map(torch.from_numpy, quantize_int8(weight.detach().float().numpy()))
    return integers.double(), scale


def _apply_int8(weight: Tensor, scale: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    """Compute a linear layer of inputs (R, I) that are rounded to 127 steps a row: (R, I) -> (R, O)."""
    largest = x.abs().amax(-1, keepdim=True).clamp(min=1e-30)
    integers = (x * (127 / largest)).round().double()
    outputs = (integers @ weight.T).to(x.dtype) * (largest / 127 * scale)
    return outputs if bias is None else outputs + bias.detach()


def _project(attention: MultiHeadAttention, x: Tensor, first: int, last: int) -> Tensor:
    """Apply a part of the input projection, as `MultiHeadAttention.project`."""
    projected: Tensor = attention.project_in(x)
    return projected[..., first * x.size(-1) : last * x.size(-1)]
