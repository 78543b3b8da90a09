"""The floating-point operations of training, and the peak of a machine (Kaplan et al. 2020, appendix B)."""

from __future__ import annotations

import time

import torch
from torch import nn

from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.training.precision import Precision

__all__ = ["flops_per_target_token", "product_ceiling"]

SIDE = 2_048  # rows and columns of the matrices with which the peak is measured


def flops_per_target_token(model: EncoderDecoder, source_tokens: float, target_tokens: float) -> float:
    """Return the floating-point operations of training for each target token: 6 (N_enc S / T + N_dec + N_out).

    N counts the weights of matrix products: two operations each in the forward pass, four in the backward pass.
    Attention scores, norms, softmax, dropout and the optimiser are left out, and so is padding.

    Args:
        model: the model whose weights are counted.
        source_tokens: number of real source tokens S.
        target_tokens: number of real target tokens T.
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
    a, b = (torch.randn(SIDE, SIDE, device=device) for _ in range(2))
    if precision == "bf16":
        a, b = a.bfloat16(), b.bfloat16()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        synchronise(device)
        start = time.perf_counter()
        torch.mm(a, b)
        synchronise(device)
        best = min(best, time.perf_counter() - start)
    return 2 * SIDE**3 / best


def synchronise(device: torch.device) -> None:
    """Wait until the device has finished all queued computations."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
