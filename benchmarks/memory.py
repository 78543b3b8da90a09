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
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine
from scale import resident_mib

SIDES = ("ours", "torch", "returned")
CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


def train_here(side: str, config: str, overrides: Sequence[str], updates: int, every: int) -> dict[str, Any]:
    """Train in this process; return the resident size at each point, and the processor time after settling."""
    import manyheads.runs.train
    from manyheads.config.load import load_config, resolve_recipe
    from manyheads.reports import SilentListener, StepReport

    if side == "returned":
        manyheads.runs.train.keep_freed_memory = lambda: None
    settling_updates = min(200, updates // 5)

    class MemoryListener(SilentListener):
        """Record the resident size and the processor time."""

        def __init__(self) -> None:
            self.sizes: dict[int, int] = {}
            self.start_seconds = 0.0

        def step(self, report: StepReport) -> None:
            if report.step == settling_updates:
                self.start_seconds = time.process_time()
            if report.step % every == 0 or report.step in (1, settling_updates, updates):
                self.sizes[report.step] = round(resident_mib())
                self.seconds, self.loss = time.process_time() - self.start_seconds, report.loss
                print(f"{side}: {report.step} updates, {self.sizes[report.step]} MiB", file=sys.stderr, flush=True)

    plan = [f"training.steps={updates}", "training.log_every=1", f"training.save_every={updates}"]
    plan += ["training.valid_sentences=0", f"training.warmup_steps={max(1, updates // 10)}"]
    settings = load_config(resolve_recipe(config), [*plan, *overrides])
    listener = MemoryListener()
    with tempfile.TemporaryDirectory() as folder:
        manyheads.runs.train.train(settings, Path(folder) / "run", listener=listener)
    sizes = listener.sizes
    largest = max(size for step, size in sizes.items() if step >= settling_updates)
    return {
        "mib": sizes,
        "growth_percent": round(100 * (largest / sizes[settling_updates] - 1), 1),
        "cpu_seconds_per_update": round(listener.seconds / (updates - settling_updates), 4),
        "loss": listener.loss,
    }


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("config", nargs="?", default="demo-de-en", help="recipe or TOML file (default demo-de-en)")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument(
        "--every", type=int, default=50, help="updates between two measurements of memory (default 50)"
    )
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--here", choices=SIDES, help=argparse.SUPPRESS)
    tiny = {"updates": 10, "every": 5, "overrides": ["training.batch_tokens=200"]}
    options = machine.parse(parser, tiny=tiny)
    if options.here:
        print(
            json.dumps(train_here(options.here, options.config, options.overrides, options.updates, options.every))
        )
        return
    results = {}
    for side in options.sides:
        command = [sys.executable, __file__, options.config, "--here", side, "--updates", str(options.updates)]
        command += ["--every", str(options.every), *(f"--set={override}" for override in options.overrides)]
        environment = dict.fromkeys(CACHES, "1024") if side == "torch" else {}
        completed = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment
        )
        results[side] = json.loads(completed.stdout)
        if not options.json:
            print(side, "; ".join(f"{key} {value}" for key, value in results[side].items()), flush=True)
    about = machine.about()
    if options.json:
        settings = {"config": options.config, "set": options.overrides}
        print(json.dumps({"unit": "MiB, seconds an update", **about, **settings, "sides": results}))
    else:
        print(machine.describe(about))


if __name__ == "__main__":
    main()
