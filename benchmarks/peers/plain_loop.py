"""A plain PyTorch training loop on the batches of manyheads."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.tensors.pairs import Batch
from manyheads.text.tokenizer import PAD
from manyheads.training.schedule import Schedule
from peers.corpus import PreparedCorpus
from peers.measured_updates import MeasuredUpdates

LogitsFunction = Callable[[Batch], Tensor]  # batch -> logits (B, T, V)


def train(model: nn.Module, logits: LogitsFunction, prepared: PreparedCorpus, precision: str) -> None:
    training = prepared.config.training
    schedule = Schedule(training, prepared.config.model.d_model)
    optimizer = torch.optim.Adam(model.parameters(), 0.0, training.betas, training.epsilon, fused=True)
    measured = MeasuredUpdates(lambda: validation_loss(model, logits, prepared))
    model.train()
    for step, batch in enumerate(prepared.batches(), start=1):
        measured.before_update(batch.target_tokens)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            value = loss(logits(batch), batch, training.label_smoothing)
        (value / batch.target_tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm or 0.0)
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(step, training.steps)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def loss(logits: Tensor, batch: Batch, smoothing: float) -> Tensor:
    """Return the cross-entropy, summed over the real target tokens."""
    return functional.cross_entropy(
        logits.flatten(0, 1).float(),
        batch.target_out.flatten(),
        ignore_index=PAD,
        label_smoothing=smoothing,
        reduction="sum",
    )


def validation_loss(model: nn.Module, logits: LogitsFunction, prepared: PreparedCorpus) -> float:
    model.eval()
    nats, tokens = 0.0, 0
    with torch.inference_mode():
        for batch in prepared.valid_batches():
            nats += float(loss(logits(batch), batch, 0.0))
            tokens += batch.target_tokens
    model.train()
    return nats / tokens
