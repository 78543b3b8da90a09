"""Measure how fast a configuration of a translator trains on this machine.

    python benchmarks/training_speed.py [CONFIG] [--set KEY=VALUE]... [--rounds 5] [--updates 10] [--tiny] [--json]

CONFIG is a TOML file or the name of a recipe; the default, demo-de-en, uses built-in text. No file is kept.
Prints target tokens/s without padding, end symbols counted: median and range of the rounds; and their arithmetic as
a share of the fastest matrix product of the same process.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from harness import Document, main, option, settings
from manyheads.allocator import keep_few_kernels, keep_freed_memory
from manyheads.checkpoint import RunDirectory
from manyheads.config.load import load_config, resolve_recipe
from manyheads.config.schema import Config
from manyheads.data.training_text import read_corpus
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.reports import SilentListener
from manyheads.tensors.devices import Precision, pick_device, pick_precision, synchronise
from manyheads.training.batches import MicroBatch, prefetch_updates
from manyheads.training.distributed import ALONE
from manyheads.training.registry import prepare_task
from manyheads.training.update import Updater
from resident import memory_mib

WARM_UPDATES = 3
LEARNING_RATE = 1e-4  # low, as nothing is to be learnt
SIDE = 2_048  # rows and columns of the matrices with which the fastest product is measured


@dataclass(frozen=True)
class TrainingSpeed:
    """Training speed. Tokens are counted with end symbols and without padding.

    Attributes:
        median, min, max: target tokens/s over the rounds.
        source_tokens_per_second: source tokens/s at the median.
        padding: share of padding positions, 0 to 1.
        gflops: arithmetic on real tokens, in GFLOP/s; ceiling_gflops: that of the fastest matrix product.
        peak_memory_mib: peak resident size of the process in MiB, on a GPU the peak of allocated memory.
    """

    median: float
    min: float
    max: float
    source_tokens_per_second: float
    padding: float
    gflops: float
    ceiling_gflops: float
    parameters: int
    precision: str
    peak_memory_mib: float


def measure_training(config: Config, *, rounds: int, updates: int) -> TrainingSpeed:
    """Measure the training speed of a translator's configuration in rounds of some updates; nothing is saved."""
    keep_few_kernels()
    keep_freed_memory()
    device = pick_device(config.training.device)
    precision = pick_precision(config.training.precision, device)
    with prepared_updates(config, device, precision) as (model, updater, batches):
        assert isinstance(model, EncoderDecoder), f'this measures translators, not task = "{config.task}"'
        _time_updates(updater, batches, WARM_UPDATES)
        results = [_time_updates(updater, batches, updates) for _ in range(rounds)]
    source, target, positions = (
        sum(result[name] for result in results) for name in ("source", "target", "positions")
    )
    speeds = [result["target"] / result["seconds"] for result in results]
    speed = statistics.median(speeds)
    return TrainingSpeed(
        median=speed,
        min=min(speeds),
        max=max(speeds),
        source_tokens_per_second=speed * source / target,
        padding=1 - (source + target) / positions,
        gflops=speed * flops_per_target_token(model, source, target) / 1e9,
        ceiling_gflops=product_ceiling(device, precision) / 1e9,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        precision=precision,
        peak_memory_mib=peak_memory_mib(device),
    )


@contextmanager
def prepared_updates(
    config: Config, device: torch.device, precision: Precision
) -> Iterator[tuple[nn.Module, Updater, Iterator[Sequence[MicroBatch]]]]:
    """Yield a new model, its updater, and the micro-batches of update after update, prefetched as in training."""
    torch.manual_seed(config.training.seed)
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder))
        task = prepare_task(config, run, read_corpus(config, run.path), SilentListener())
        model = task.model().to(device).train()
        updater = Updater(task.objective(model), config.training, device=device, precision=precision, world=ALONE)
        source = task.updates(ALONE)

        def endless() -> Generator[Sequence[MicroBatch]]:
            for epoch in itertools.count():
                for _, parts in prefetch_updates(source, epoch, source.epoch(epoch), 0, device):
                    yield parts

        batches = endless()
        yield model, updater, batches
        batches.close()


def _time_updates(updater: Updater, batches: Iterator[Sequence[MicroBatch]], updates: int) -> Counter[str]:
    """Return seconds, source and target tokens, and positions (padding included) of some updates."""
    result = Counter[str]()
    synchronise(updater.device)
    start = time.perf_counter()
    for _ in range(updates):
        parts = next(batches)
        tokens = sum(part.target_tokens for part in parts)
        losses = updater.gradients(parts, tokens)
        updater.apply(LEARNING_RATE)
        source = sum(part.source_tokens for part in parts)
        positions = sum(part.num_positions for part, _, _ in losses)
        result.update(source=source, target=tokens, positions=positions)
    synchronise(updater.device)
    return result | Counter({"seconds": time.perf_counter() - start})


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


def peak_memory_mib(device: torch.device) -> float:
    """Return the largest memory so far: of a GPU what torch allocated, else the resident size of the process."""
    return torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else memory_mib()


def measure(arguments: argparse.Namespace) -> Document:
    config = load_config(resolve_recipe(arguments.config), arguments.overrides)
    found = measure_training(config, rounds=arguments.rounds, updates=arguments.updates)
    return {**asdict(found), "of the ceiling": found.gflops / found.ceiling_gflops}


OPTIONS = {
    "config": option("demo-de-en", "TOML file or recipe"),
    "--set": settings(["data.limit=300", "training.batch_tokens=256"]),
    "--rounds": option(5, "measurements", tiny=2),
    "--updates": option(10, "updates of a measurement", tiny=2),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="target tokens/s")
