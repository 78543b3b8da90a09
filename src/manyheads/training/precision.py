"""The choice of device and number format, and how fast a device multiplies matrices."""

from __future__ import annotations

import functools
import time
from typing import Literal

import torch
from torch import nn

from manyheads.errors import ConfigError
from manyheads.model.encoder_decoder import EncoderDecoder

_SIDE = 2_048  # rows and columns of the matrices with which the peak is measured
Precision = Literal["fp32", "bf16"]


def pick_device(name: str) -> torch.device:
    """Return the device of `training.device`; "auto" is the first GPU, or the CPU without one.

    Raises:
        ConfigError: there is no such device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError([f'training.device = "{name}" cannot be used: {reason}. Use "cpu" or "auto".']) from error
    return device


def pick_precision(precision: Literal["auto", "fp32", "bf16"], device: torch.device) -> Precision:
    """Return the number format of matrix products; "auto" is bf16 where a product is measured faster in it."""
    if precision != "auto":
        return precision
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    return "bf16" if _bf16_is_faster() else "fp32"


@functools.cache
def _bf16_is_faster() -> bool:
    """Measure on the CPU, once in a process, whether matrix products are faster in bf16 than in float32."""
    single = _product_seconds(torch.float32)
    return _product_seconds(torch.bfloat16, enough=10 * single) < 0.75 * single


def _product_seconds(dtype: torch.dtype, enough: float = float("inf")) -> float:
    """Measure the matrix product (1024, 256) x (256, 1024) on the CPU; return the shortest time in seconds.

    A product that took longer than `enough` seconds is not repeated: without instructions for bf16 it takes 0.3 s.
    """
    a, b = torch.ones(1024, 256, dtype=dtype), torch.ones(256, 1024, dtype=dtype)
    shortest = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        torch.mm(a, b)
        shortest = min(shortest, time.perf_counter() - start)
        if shortest > enough:
            break
    return shortest


def autocast(device: torch.device, precision: Precision) -> torch.autocast:
    """Compute matrix products in a number format; weights, residual stream, norms and loss stay in float32."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


def flops_per_target_token(model: EncoderDecoder, source_tokens: float, target_tokens: float) -> float:
    """Return the floating-point operations of training for each target token: 6 (N_enc S / T + N_dec + N_out).

    N counts the weights of matrix products: two operations each in the forward pass, four in the backward pass. S
    and T are the real source and target tokens. Attention scores, norms, softmax, dropout and the optimiser are
    left out, and so is padding. Source: Kaplan et al. (2020), appendix B.
    """
    encoder, decoder = (
        sum(
            module.weight.numel() for layer in layers for module in layer.modules() if isinstance(module, nn.Linear)
        )
        for layers in (model.encoder_layers, model.decoder_layers)
    )
    return 6 * (encoder * source_tokens / target_tokens + decoder + model.output.weight.numel())


def product_ceiling(device: torch.device, precision: Precision, seconds: float = 1.0) -> float:
    """Measure the fastest matrix product of this process, in floating-point operations a second."""
    a, b = (torch.randn(_SIDE, _SIDE, device=device) for _ in range(2))
    if precision == "bf16":
        a, b = a.bfloat16(), b.bfloat16()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        synchronise(device)
        start = time.perf_counter()
        torch.mm(a, b)
        synchronise(device)
        best = min(best, time.perf_counter() - start)
    return 2 * _SIDE**3 / best


def synchronise(device: torch.device) -> None:
    """Wait until the device has finished all queued computations."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
