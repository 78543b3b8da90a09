"""Load a run, translate in three precisions, train ten updates, and export, to execute the instructions of all.

    qemu-x86_64 -cpu Nehalem .venv/bin/python -m tests.system.smoke

A processor that lacks one of these instructions ends the program by a signal.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from tests.golden.test_golden import GOLDEN, expected
from tests.runs.parts import metrics
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.errors import ManyheadsError
from manyheads.inference.translation.translator import Translator
from manyheads.runs.export import export
from manyheads.runs.train import train

TOLERANCES = {"fp32": 1e-4, "bf16": 0.5, "int8": 0.5}  # largest differences from the scores of the golden run


def translate(run: Path, precision: str) -> str:
    """Translate the sentences of the golden run; compare their scores with the stored ones."""
    known = expected(GOLDEN[-1])
    try:
        found = Translator.load(run, precision=precision).translate(known["sources"])
    except ManyheadsError as error:
        return f"refused: {error}"
    assert precision != "fp32" or [output.translation for output in found] == known["translations"]
    difference = max(abs(output.score - score) for output, score in zip(found, known["scores"], strict=True))
    assert difference < TOLERANCES[precision], difference
    return f"scores differ by {difference:.1e}"


def update(folder: Path) -> str:
    """Train the last ten updates of the golden run; compare their losses with the stored ones."""
    config = RunDirectory(folder / "run").config()
    config = config.model_copy(update={"data": config.data.model_copy(update={"root": str(folder / "corpus")})})
    train(config, folder / "run", listener=CollectingListener())
    known = expected(GOLDEN[-1])["losses"]
    losses = {str(record["step"]): record["loss"] for record in metrics(folder / "run") if record["kind"] == "step"}
    difference = max(abs(losses[step] - known[step]) for step in known)
    assert difference < 1e-3, difference
    return f"losses differ by {difference:.1e}"


def main() -> None:
    print(f"torch {torch.__version__}, instruction set {torch.backends.cpu.get_cpu_capability()}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(GOLDEN[-1], Path(temporary) / "golden"))
        run = folder / "run"
        stages: dict[str, Callable[[], str]] = {
            **{f"translate in {name}": lambda name=name: translate(run, name) for name in TOLERANCES},  # type: ignore[misc]
            "ten updates": lambda: update(folder),
            "export to ctranslate2": lambda: export(run, folder / "ctranslate2", "ctranslate2").parity.line(),
        }
        for name in sys.argv[1:] or stages:
            start = time.perf_counter()
            print(f"{name}: ", end="", flush=True)
            print(f"{stages[name]()}, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
