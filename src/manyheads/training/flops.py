"""How much arithmetic training is, and how much of it a machine could do (Kaplan et al. 2020, appendix B)."""

from __future__ import annotations

import time

import torch
from torch import nn

from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.training.precision import Precision

__all__ = ["flops_per_target_token", "product_ceiling"]

SIDE = 2_048  # of the square matrices that the ceiling is measured with


def flops_per_target_token(model: EncoderDecoder, source_tokens: float, target_tokens: float) -> float:
    """Floating-point operations of a training step for each target token: 6 (N_enc S / T + N_dec + N_out).

    N counts the weights of matrix products: two operations each in the forward pass, four in the backward pass.
    Attention scores, norms, softmax, dropout and the optimiser are left out, and so is padding.

    Args:
        model: whose weights are counted.
        source_tokens: real source tokens, S.
        target_tokens: real target tokens, T.
    """
    encoder, decoder = (
        sum(
            module.weight.numel() for layer in layers for module in layer.modules() if isinstance(module, nn.Linear)
        )
        for layers in (model.encoder_layers, model.decoder_layers)
    )
    return 6 * (encoder * source_tokens / target_tokens + decoder + model.output.weight.numel())


def product_ceiling(device: torch.device, precision: Precision, seconds: float = 1.0) -> float:
    """The fastest matrix product this process gets out of the machine, in operations a second."""
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
    """Wait until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
