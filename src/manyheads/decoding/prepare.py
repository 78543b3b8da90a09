"""Packing of a model's weights for decoding, with torch and in C."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from manyheads.decoding.model import InferenceModel
from manyheads.decoding.native.build import library
from manyheads.decoding.native.model import NativeModel
from manyheads.decoding.native.weights import Precision
from manyheads.errors import UsageError
from manyheads.model.encoder_decoder import EncoderDecoder


def pack(model: EncoderDecoder, precision: Precision = "fp32") -> InferenceModel:
    """Pack the weights of a model for decoding with torch on its device.

    Args:
        model: the model, on the device that decodes.
        precision: "fp32" computes what the model computes. On a CPU "bf16" rounds the matrices to 8 significant
            bits; "int8" rounds them to 8 bits with a scale for each output, and the inputs of linear layers to 8
            bits with a scale for each row. On another device "bf16" computes in bfloat16.

    Raises:
        UsageError: "int8" on another device than a CPU.
    """
    device = model.output.weight.device
    if device.type == "cpu":
        return InferenceModel(model, rounding=precision)
    if precision == "int8":
        raise UsageError(f'precision "int8" is for a CPU, not for {device.type}. Use "bf16".')
    return InferenceModel(model, torch.bfloat16 if precision == "bf16" else None)


def pack_native(model: EncoderDecoder, precision: Precision = "fp32") -> NativeModel | None:
    """Pack the weights of a model for the C code; None without it, or if they are not float32 on a CPU."""
    weight = model.output.weight
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or (code := library()) is None:
        return None
    # Not `Tensor.numpy`, after which the storage cannot be resized: FSDP frees the gathered weights by resizing.
    named = model.named_parameters(remove_duplicate=False)
    tensors: dict[str, Any] = {name: np.from_dlpack(weight.detach()) for name, weight in named}
    sizes = model.source_embedding.tokens.num_embeddings, model.output.out_features
    return NativeModel(tensors, model.config, sizes, precision, code)
