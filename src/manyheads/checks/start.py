"""First updates of a new model: loss, time and memory.

Shapes: V vocabulary, D model width.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.checks.catalogue import config_finding
from manyheads.config.schema import TrainingConfig
from manyheads.tensors.devices import Precision, autocast
from manyheads.training.batches import BatchSource, MicroBatch
from manyheads.training.distributed import ALONE
from manyheads.training.objective import Objective
from manyheads.training.update import Updater
from transformer_doctor.report import Finding

# positions of the batch whose memory is measured; larger batches need more in proportion
_MEASURED_POSITIONS = 1_500
_TIMED = 4  # updates, the first of which is not counted
_MAX_SECONDS = 8.0  # seconds, after which no further update is timed
# Bounds of the first loss as multiples of ln V; a new model is not below the first but by the chance of one batch.
# With tied embeddings the logit of the input token begins at about 0.4 sqrt(D) (design/kernels-in-training.md),
# which exceeds ln V for few choices.
_MIN_LOSS_FACTOR, _MAX_LOSS_FACTOR, _OWN_LOGIT = 0.8, 2.0, 0.4


@torch.no_grad()
def first_loss(model: nn.Module, objective: Objective, batch: Sequence[MicroBatch]) -> float:
    """Return the loss of a new model on its first batch, in nats a prediction without label smoothing."""
    model.eval()
    nats = sum(float(objective(part)[1]) for part in batch)
    return nats / sum(part.target_tokens for part in batch)


def start_findings(loss: float, choices: int, tied_width: int = 0) -> Iterator[Finding]:
    """Yield a finding if the loss of a new model is not near that of a blind guess.

    Args:
        loss: loss of the first batch, in nats a prediction.
        choices: V, or the number of classes.
        tied_width: D where the output matrix is that of the input, else 0.
    """
    blind = math.log(choices)
    most = _MAX_LOSS_FACTOR * max(blind, _OWN_LOGIT * math.sqrt(tied_width))
    if not _MIN_LOSS_FACTOR * blind <= loss <= most:
        evidence = (
            f"the loss of the first batch is {loss:.2f} nats before any update; a blind guess among "
            f"{choices:,} costs {blind:.2f}"
        )
        yield config_finding("wrong-at-the-start", evidence)


def measure_update(
    model: nn.Module,
    objective: Callable[[], Objective],
    updates: BatchSource,
    training: TrainingConfig,
    device: torch.device,
    precision: Precision,
) -> tuple[float, float, float]:
    """Make some updates, and measure their time and memory. The weights are changed.

    Args:
        model: a new model.
        objective: function that makes an objective of the model.
        updates: batches of the training.
        training: the `[training]` settings.
        device: device of the training.
        precision: number format of the matrix products.

    Returns:
        The median seconds of an update; the bytes of weights, gradients, moments, and of the tensors that the
        heaviest batch saves for the backward pass; the mean number of target tokens an update.
    """
    model.to(device).train()
    updater = Updater(objective(), training, device=device, precision=precision, world=ALONE)
    epoch = updates.epoch(0)
    times, tokens, begin = [], [], time.perf_counter()
    for position in range(min(_TIMED, len(epoch))):
        batch = updates.batches(0, position, epoch[position])
        start = time.perf_counter()
        tokens.append(sum(part.target_tokens for part in batch))
        updater.gradients(batch, tokens[-1])
        updater.apply(1e-6)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
        if time.perf_counter() - begin > _MAX_SECONDS:
            break
    counted = sorted(times[1:] or times)
    heaviest = updates.batches(0, updates.heaviest(), epoch[updates.heaviest()])
    saved = max(_saved_for_backward(model, objective(), part, device, precision) for part in heaviest)
    weights = _bytes_of(model.parameters())
    states = updater.optimizer.state.values()
    moments = _bytes_of(value for state in states for value in state.values() if isinstance(value, Tensor))
    averages = weights if training.ema else 0
    memory = 2 * weights + moments + averages + saved
    return counted[len(counted) // 2], memory, sum(tokens) / len(tokens)


def _bytes_of(tensors: Iterator[Tensor] | Iterator[nn.Parameter]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _saved_for_backward(
    model: nn.Module, objective: Objective, batch: MicroBatch, device: torch.device, precision: Precision
) -> float:
    """Return the bytes that a batch saves for the backward pass, measured on a share of its rows."""
    small: Any = batch
    while small.num_positions > _MEASURED_POSITIONS and small.examples > 1:
        small = small.halves()[0]
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    sizes: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), autocast(device, precision):
        loss, _ = objective(small.to(device))
    del loss
    return sum(sizes.values()) * batch.num_positions / small.num_positions
