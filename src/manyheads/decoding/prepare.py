"""Packing of a model's weights for decoding, with torch and in C."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from manyheads.decoding.model import InferenceModel
from manyheads.inference.native.build import library
from manyheads.inference.native.model import NativeModel
from manyheads.inference.native.weights import Precision, TorchPrecision
from manyheads.model.encoder_decoder import EncoderDecoder


def pack(model: EncoderDecoder, precision: TorchPrecision = "fp32") -> InferenceModel:
    """Pack the weights of a model for decoding with torch on its device.

    Args:
        model: the model, on the device that decodes.
        precision: "fp32" computes what the model computes. On a CPU "bf16" rounds the matrices to 8 significant
            bits; on another device it computes in bfloat16.
    """
    if precision == "fp32":
        return InferenceModel(model)
    if model.output.weight.device.type == "cpu":
        return InferenceModel(model, rounding=torch.bfloat16)
    return InferenceModel(model, torch.bfloat16)


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
