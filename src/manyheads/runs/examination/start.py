"""The new model of a configuration: its invariants, its first batch, what an update takes.

Shapes: B batch, S source length.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.data.batch import make_batch
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.doctor.before.start import Start
from manyheads.doctor.examination import examine
from manyheads.doctor.formula import examine_attention
from manyheads.doctor.machine import memory
from manyheads.doctor.report import Report
from manyheads.model.attention import attend
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import EncoderOnly, TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.runs.training_tasks import TrainingTask
from manyheads.text.tokenizer import BOS, EOS, PAD
from manyheads.training.batches import BatchSource, MicroBatch
from manyheads.training.distributed import ALONE
from manyheads.training.objective import Objective
from manyheads.training.precision import Precision, autocast
from manyheads.training.update import Updater

__all__ = ["LONGEST", "Measured", "Reader", "examine_model", "first_loss", "free_memory", "measure_update"]

RATE = 1e-3  # of the updates that the model is examined with
SMALL = 1_500  # positions of the batch whose memory is measured; that of larger ones grows with them
TIMED = 4  # updates, the first of which is not counted
PATIENCE = 8.0  # seconds, after which no further one is timed
LONGEST = 300  # tokens of the longest text a model is tried on


def examine_model(kind: TrainingTask, model: Transformer) -> Report:
    """The invariants that a new model can be asked about (A to E, G), and the strength of its tokens."""
    report = examine_attention(attend)
    size = kind.tokenizers.source.size
    if isinstance(model, EncoderDecoder):
        return report + examine(
            model,
            vocab_size=(size, kind.tokenizers.target.size),
            pad=PAD,
            bos=BOS,
            eos=EOS,
            left_padding=True,
            train_step=training_step(model, kind.objective(model)),
            collate=lambda sources, targets: (make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS),),
            stepper=lambda source: EncoderDecoderStepper(model, source),
            longest=LONGEST,
        )
    if isinstance(model, DecoderOnly):
        return report + examine(model, vocab_size=size, pad=PAD, eos=EOS, kind="decoder", longest=LONGEST)
    assert isinstance(model, EncoderOnly)
    return report + examine(
        Reader(model), vocab_size=size, pad=PAD, bos=BOS, eos=EOS, kind="encoder", longest=LONGEST
    )


class Reader(nn.Module):
    """The encoder of a model without its head: ids (B, S) -> hidden states (B, S, D)."""

    def __init__(self, model: EncoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        """Read."""
        return self.model.encode(ids)[0]


def training_step(model: nn.Module, objective: Objective) -> Callable[[MicroBatch], float]:
    """One update of ours on a batch, with an optimiser of its own; the mean loss without smoothing is returned."""
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)

    def step(batch: MicroBatch) -> float:
        optimizer.zero_grad(set_to_none=True)
        loss, nll = objective(batch)
        (loss / batch.target_tokens).backward()
        optimizer.step()
        return float(nll) / batch.target_tokens

    return step


@torch.no_grad()
def first_loss(kind: TrainingTask, model: Transformer, updates: BatchSource) -> Start:
    """The first batch of training seen through the new model."""
    model.eval()
    parts = updates.batches(0, 0, updates.epoch(0)[0])
    objective = kind.objective(model)
    nats = sum(float(objective(part)[1]) for part in parts)
    loss, width = nats / sum(part.target_tokens for part in parts), kind.config.model.d_model
    if isinstance(model, TextClassifier):
        return Start(loss, model.output.out_features)
    tied = kind.config.model.tied_embeddings != "none"
    return Start(loss, kind.tokenizers.target.size, width if tied else 0)


class Measured:
    """What updates take.

    Attributes:
        seconds: the median of the timed ones.
        memory: bytes that training needs at the most: weights, gradients, moments, what the heaviest batch keeps
            for the backward pass, and what the process held before.
        batch: mean of target tokens an update.
    """

    def __init__(self, seconds: float, memory: float, batch: float) -> None:
        self.seconds = seconds
        self.memory = memory
        self.batch = batch


def measure_update(
    kind: TrainingTask, model: Transformer, updates: BatchSource, device: torch.device, precision: Precision
) -> Measured:
    """Make some updates, and look at what they take. The weights are changed."""
    config = kind.config
    model.to(device).train()
    updater = Updater(kind.objective(model), config.training, device=device, precision=precision, world=ALONE)
    plan = updates.epoch(0)
    times, tokens, begun = [], [], time.perf_counter()
    for position in range(min(TIMED, len(plan))):
        parts = updates.batches(0, position, plan[position])
        start = time.perf_counter()
        tokens.append(sum(part.target_tokens for part in parts))
        updater.gradients(parts, tokens[-1])
        updater.apply(1e-6)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
        if time.perf_counter() - begun > PATIENCE:
            break
    counted = sorted(times[1:] or times)
    heaviest = updates.batches(0, updates.heaviest(), plan[updates.heaviest()])
    kept = max(kept_for_backward(kind, model, part, device, precision) for part in heaviest)
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    moments = sum(
        value.numel() * value.element_size()
        for state in updater.optimizer.state.values()
        for value in state.values()
        if isinstance(value, Tensor)
    )
    averages = weights if config.training.ema else 0
    needed = 2 * weights + moments + averages + kept
    return Measured(
        seconds=counted[len(counted) // 2],
        memory=needed + (0.0 if device.type == "cuda" else resident()),
        batch=sum(tokens) / len(tokens),
    )


def kept_for_backward(
    kind: TrainingTask, model: Transformer, part: MicroBatch, device: torch.device, precision: Precision
) -> float:
    """Bytes that a batch keeps for the backward pass, measured on a share of its rows."""
    small: Any = part
    while small.places > SMALL and small.examples > 1:
        small = small.halves()[0]
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    found: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    objective = kind.objective(model)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), autocast(device, precision):
        loss, _ = objective(small.to(device))
    del loss
    return sum(found.values()) * part.places / small.places


def resident() -> float:
    """Bytes this process holds now; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):  # not Linux
        return 0.0
    return pages * 4096.0


def free_memory(device: torch.device) -> float | None:
    """Bytes that can still be used: on Linux also what caches hold; None where the system does not tell."""
    total, free = memory(device)
    if device.type == "cuda":
        return None if free is None else free * 2**30
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as lines:
            found = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
        return float(found["MemAvailable"])
    except (OSError, ValueError, KeyError, IndexError):  # not Linux
        return None if total is None else total * 2**30
