"""Measure how the memory of a training grows, and what keeping it small costs.

    python benchmarks/memory.py [CONFIG] [--set KEY=VALUE]... [--updates 1000] [--every 50] [--tiny] [--json]

Trains the configuration (default: the recipe `demo-de-en`) without validation, each side in a process of its own:
    ours        as `manyheads train` does
    torch       with the caches of kernels as large as torch and oneDNN make them
    returned    with the C library returning freed memory to the system, as it does by itself
Prints the resident size without the pages of files at every --every updates, in MiB; its growth after a fifth of
the updates, but at most 200, in per cent; and seconds of processor time an update after that, all threads together.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from harness import Document, in_own_process, main, option, settings
from resident import memory_mib

SIDES = ("ours", "torch", "returned")
CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


def train_here(
    side: str, recipe: str, overrides: Sequence[str], updates: int, every: int, run: Path | None = None
) -> Document:
    """Train in this process; return the resident size at each point, and the times.

    Args:
        side: one of `SIDES`.
        recipe: recipe or TOML file.
        overrides: settings.
        updates: number of updates.
        every: updates between two measurements.
        run: where to train, or to go on with an earlier training; None: a folder that is removed.
    """
    import manyheads.runs.train
    from manyheads.config.load import load_config, resolve_recipe
    from manyheads.reports import SilentListener, StepReport

    if side == "returned":
        manyheads.runs.train.keep_freed_memory = lambda: None
    settling_updates = min(200, updates // 5)

    class MemoryListener(SilentListener):
        def __init__(self) -> None:
            self.sizes: dict[int, int] = {}
            self.start_seconds = self.first = 0.0

        def step(self, report: StepReport) -> None:
            self.first = self.first or time.perf_counter()
            if report.step == settling_updates:
                self.start_seconds = time.process_time()
            if report.step % every == 0 or report.step in (1, settling_updates, updates):
                self.sizes[report.step] = round(memory_mib("RssAnon"))
                self.seconds, self.loss = time.process_time() - self.start_seconds, report.loss
                print(f"{side}: {report.step} updates, {self.sizes[report.step]} MiB")

    plan = [f"training.steps={updates}", "training.log_every=1", f"training.save_every={updates}"]
    plan += ["training.valid_sentences=0", f"training.warmup_steps={max(1, updates // 10)}"]
    config = load_config(resolve_recipe(recipe), [*plan, *overrides])
    listener, start = MemoryListener(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        manyheads.runs.train.train(config, run or Path(folder) / "run", listener=listener, force=run is not None)
    sizes = listener.sizes
    settled = [size for step, size in sizes.items() if step >= settling_updates]
    return {
        "seconds_to_the_first_update": round(listener.first - start, 1),
        "mib": sizes,
        "largest_mib_with_files": round(memory_mib()),
        "growth_percent": round(100 * (max(settled) / settled[0] - 1), 1),
        "cpu_seconds_per_update": round(listener.seconds / (updates - settling_updates), 4),
        "loss": listener.loss,
    }


def measure(arguments: argparse.Namespace) -> Document:
    results = {}
    for side in arguments.sides:
        with mock.patch.dict(os.environ, dict.fromkeys(CACHES, "1024") if side == "torch" else {}):
            results[side] = in_own_process(
                train_here, side, arguments.config, arguments.overrides, arguments.updates, arguments.every
            )
        print(side, results[side])
    return {"config": arguments.config, "set": arguments.overrides, "sides": results}


OPTIONS = {
    "config": option("demo-de-en", "recipe or TOML file"),
    "--set": settings(["training.batch_tokens=200"]),
    "--updates": option(1_000, "updates of each side", tiny=10),
    "--every": option(50, "updates between two measurements of memory", tiny=5),
    "--sides": option([*SIDES], "sides to measure", choices=SIDES),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="MiB, seconds an update")
