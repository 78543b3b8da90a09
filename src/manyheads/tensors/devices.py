"""The choice of device and number format."""

from __future__ import annotations

import functools
import time
from typing import Literal

import torch

from manyheads.errors import ConfigError

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


def synchronise(device: torch.device) -> None:
    """Wait until the device has finished all queued computations."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
