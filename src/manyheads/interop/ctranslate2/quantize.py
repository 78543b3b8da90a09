"""Round the matrices of a CTranslate2 specification to 8 bits, so that every processor computes them exactly.

Without VNNI instructions (SSE, AVX2, the first AVX-512 processors), oneDNN and MKL multiply inputs of 1 to 255 by
weights of -127 to 127, and add the products of two neighbouring columns in 16 bits. These sums saturate: two
weights of 100 and two inputs of 200 make 32,767 instead of 40,000. CTranslate2 scales each row by its largest
weight. Here the scale comes from the largest sum of two neighbours of the same sign, which becomes 128 at most: 255
x 128 = 32,640 always fits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from manyheads.interop.ctranslate2.spec import specs_of

_LARGEST_PAIR = 127  # before rounding, which adds one half to each of the two: 128 afterwards
_MIN_SUM = 1e-20  # of a sum: what is smaller becomes zero
_OTHER_TENSORS = {
    "int8": torch.float32,
    "int8_float32": torch.float32,
    "int8_bfloat16": torch.bfloat16,
    "int8_float16": torch.float16,
}


def _round_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return a matrix (N, K) in int8 and the factor of each row (N,)."""
    pairs = functional.pad(weight, (0, weight.size(1) % 2)).unflatten(1, (-1, 2))
    positive, negative = (side.clamp(min=0).sum(2).amax(1) for side in (pairs, -pairs))
    scale = _LARGEST_PAIR / torch.maximum(positive, negative).clamp(min=_MIN_SUM)
    return (weight * scale[:, None]).round().to(torch.int8), scale


def quantize_spec(spec: Any, quantization: str) -> None:
    """Quantize a specification before its validation, instead of its own `optimize`."""
    other_type = _OTHER_TENSORS[quantization]

    def quantize(layer: Any, name: str, value: object) -> None:
        key = name.rpartition("/")[2]
        if not isinstance(value, Tensor):
            return
        if hasattr(layer, f"{key}_scale"):
            rounded, scale = _round_rows(value)
            setattr(layer, key, rounded.numpy())
            setattr(layer, f"{key}_scale", scale.numpy())
        else:
            setattr(layer, key, value.to(other_type))

    specs_of().model_spec.visit_spec(spec, quantize)
