"""Measure how fast a configuration trains on this machine, also as a share of the fastest matrix product."""

from __future__ import annotations

import itertools
import platform
import statistics
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from manyheads import __version__
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.errors import UsageError
from manyheads.evaluation.verdicts import verdict_lines
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.tasks.corpus import read_corpus
from manyheads.tasks.registry import prepare_task
from manyheads.training.batches import BatchSource, MicroBatch, prefetch_updates
from manyheads.training.distributed import ALONE
from manyheads.training.log import Listener
from manyheads.training.memory import keep_few_kernels, keep_freed_memory
from manyheads.training.precision import (
    flops_per_target_token,
    pick_device,
    pick_precision,
    product_ceiling,
    synchronise,
)
from manyheads.training.update import Updater

_WARM_UPDATES = 3
_STEADY_SPREAD = 0.1  # spread of the rounds over their median
_MINUTES = 120  # seconds above which a time is given in minutes
_AMOUNTS = {"target tokens/s": 1_000_000, "sentences/s": 1_000}  # amount of work whose time is given
_LEARNING_RATE = 1e-4  # learning rate; low, as nothing is to be learnt


def _versions() -> dict[str, str]:
    return {"manyheads": __version__, "torch": torch.__version__, "python": platform.python_version()}


@dataclass(frozen=True, kw_only=True)
class Speed:
    """A measured speed.

    Attributes:
        median, min, max: speed over the rounds, in `unit`.
        peak_memory_mib: peak resident size of the process in MiB, on a GPU the peak of allocated memory.
        parameters: number of parameters of the model.
        precision: number format of the computation.
        device: name of the device; threads: threads of PyTorch.
    """

    unit: str
    median: float
    min: float
    max: float
    peak_memory_mib: float
    parameters: int
    precision: str
    device: str
    threads: int
    versions: dict[str, str] = field(default_factory=_versions)

    def verdict(self) -> list[str]:
        """Return whether the rounds agree, the duration of some work, and what to compare the speed with."""
        spread = (self.max - self.min) / self.median
        unit, per = self.unit.removesuffix("/s"), _AMOUNTS[self.unit]
        if self.min == self.max:
            steady = "a single round does not show how steady the speed is"
        elif spread <= _STEADY_SPREAD:
            steady = f"the rounds agree within {spread:.0%}"
        else:
            steady = (
                f"the rounds differ by {spread:.0%}: other programs are running, so repeat it on an idle machine"
            )
        seconds = per / self.median
        time = f"{seconds:,.1f} seconds" if seconds < _MINUTES else f"{seconds / 60:,.1f} minutes"
        return [
            f"{steady}. {per:,} {unit} take {time} at this speed",
            "compare it only with a measurement of the same text, model, number format and threads",
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the document of `bench --json`."""
        return {**asdict(self), "verdict": ". ".join(self.verdict())}


@dataclass(frozen=True, kw_only=True)
class TrainingSpeed(Speed):
    """Training speed. Tokens are counted with end symbols and without padding.

    Attributes:
        source_tokens_per_second: source tokens/s at the median.
        padding: share of padding positions, 0 to 1.
        gflops: arithmetic on real tokens, in GFLOP/s.
        ceiling_gflops: speed of the fastest matrix product in this process, in GFLOP/s.
        share_of_ceiling: gflops / ceiling_gflops.
    """

    unit: str = "target tokens/s"
    source_tokens_per_second: float
    padding: float
    gflops: float
    ceiling_gflops: float
    share_of_ceiling: float

    def lines(self) -> list[str]:
        """Return lines of text."""
        return [
            f"{self.median:,.0f} target tokens/s ({self.min:,.0f} to {self.max:,.0f}), "
            f"{self.source_tokens_per_second:,.0f} source tokens/s, {100 * self.padding:.1f} % padding",
            f"{self.gflops:,.0f} useful GFLOP/s: {100 * self.share_of_ceiling:.0f} % of the "
            f"{self.ceiling_gflops:,.0f} that a matrix product reaches ({self.precision}, {self.device}, "
            f"{self.threads} threads)",
            f"{self.parameters:,} parameters, {self.peak_memory_mib:,.0f} MiB at most",
            *verdict_lines(self.verdict()),
        ]


def bench_train(config: Config, *, rounds: int, updates: int, listener: Listener) -> TrainingSpeed:
    """Measure the training speed of a configuration; nothing is saved.

    Args:
        config: configuration of model, text and batches.
        rounds: number of measurements.
        updates: number of optimiser updates a round.
        listener: receives messages.

    Raises:
        DataError: text is missing or cannot be used.
        UsageError: rounds or updates is below 1.
    """
    if rounds < 1 or updates < 1:
        raise UsageError(f"{rounds} rounds of {updates} updates measure nothing. Ask for at least one of each.")
    if not config.spec.decodes:
        raise UsageError(f'bench measures training of translators, not task = "{config.task}".')
    keep_few_kernels()
    keep_freed_memory()
    device = pick_device(config.training.device)
    precision = pick_precision(config.training.precision, device)
    torch.manual_seed(config.training.seed)
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder))
        task = prepare_task(config, run, read_corpus(config, run), listener)
        model = task.model().to(device).train()
        assert isinstance(model, EncoderDecoder)
        updater = Updater(task.objective(model), config.training, device=device, precision=precision, world=ALONE)
        batches = _endless(task.updates(ALONE), device)
        results = []
        with listener.phase("measuring", _WARM_UPDATES + rounds * updates, "updates") as advance:
            _time_updates(updater, batches, _WARM_UPDATES)
            advance(_WARM_UPDATES)
            for number in range(1, rounds + 1):
                results.append(_time_updates(updater, batches, updates))
                advance(updates)
                listener.message(f"round {number} of {rounds}: {results[-1].speed:,.0f} target tokens/s")
        batches.close()
    source, target = sum(result.source for result in results), sum(result.target for result in results)
    speed = statistics.median(result.speed for result in results)
    gflops = speed * flops_per_target_token(model, source, target) / 1e9
    ceiling = product_ceiling(device, precision) / 1e9
    return TrainingSpeed(
        median=speed,
        min=min(result.speed for result in results),
        max=max(result.speed for result in results),
        source_tokens_per_second=speed * source / target,
        padding=1 - (source + target) / sum(result.positions for result in results),
        gflops=gflops,
        ceiling_gflops=ceiling,
        share_of_ceiling=gflops / ceiling,
        precision=precision,
        **machine(model, device),
    )


def _endless(source: BatchSource, device: torch.device) -> Generator[Sequence[MicroBatch]]:
    """Yield the micro-batches of update after update, epoch after epoch, prefetched as in training."""
    for epoch in itertools.count():
        for _, parts in prefetch_updates(source, epoch, source.epoch(epoch), 0, device):
            yield parts


@dataclass
class _TrainingRound:
    """Time in seconds, token counts and positions (padding included) of one round."""

    seconds: float = 0.0
    source: int = 0
    target: int = 0
    positions: int = 0

    @property
    def speed(self) -> float:
        return self.target / self.seconds


def _time_updates(updater: Updater, batches: Iterator[Sequence[MicroBatch]], updates: int) -> _TrainingRound:
    result = _TrainingRound()
    synchronise(updater.device)
    start = time.perf_counter()
    for _ in range(updates):
        parts = next(batches)
        tokens = sum(part.target_tokens for part in parts)
        losses = updater.gradients(parts, tokens)
        updater.apply(_LEARNING_RATE)
        result.source += sum(part.source_tokens for part in parts)
        result.target += tokens
        result.positions += sum(part.num_positions for part, _, _ in losses)
    synchronise(updater.device)
    result.seconds = time.perf_counter() - start
    return result


def machine(model: torch.nn.Module, device: torch.device) -> dict[str, Any]:
    """Return the fields that both results share: peak memory, number of parameters, name of the device, threads."""
    return {
        "peak_memory_mib": peak_memory(device) / 2**20,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
    }


def peak_memory(device: torch.device) -> float:
    """Return the peak memory in bytes; 0 if the system does not report it."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    try:
        import resource  # not on Windows
    except ImportError:
        return 0.0
    unit = 1 if platform.system() == "Darwin" else 1_024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
