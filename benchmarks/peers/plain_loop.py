"""A plain PyTorch training loop on the batches of manyheads."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from manyheads.tensors.pairs import Batch
from manyheads.training.schedule import Schedule
from peers.corpus import PreparedCorpus
from peers.measured_updates import MeasuredUpdates

LossFunction = Callable[
    [Batch, float], Tensor
]  # (batch, label smoothing) -> loss, summed over the real target tokens


def train(model: nn.Module, loss: LossFunction, prepared: PreparedCorpus, precision: str) -> None:
    """Train until the measuring process ends."""
    training = prepared.config.training
    schedule = Schedule(training, prepared.config.model.d_model)
    optimizer = torch.optim.Adam(model.parameters(), 0.0, training.betas, training.epsilon, fused=True)
    measured = MeasuredUpdates(lambda: validation_loss(model, loss, prepared))
    model.train()
    for step, batch in enumerate(prepared.batches(), start=1):
        measured.before_update(batch.target_tokens)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            value = loss(batch, training.label_smoothing)
        (value / batch.target_tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm or 0.0)
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(step, training.steps)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def validation_loss(model: nn.Module, loss: LossFunction, prepared: PreparedCorpus) -> float:
    """Return the validation loss in nats a target token, in fp32."""
    model.eval()
    nats, tokens = 0.0, 0
    with torch.inference_mode():
        for batch in prepared.valid_batches():
            nats += float(loss(batch, 0.0))
            tokens += batch.target_tokens
    model.train()
    return nats / tokens
