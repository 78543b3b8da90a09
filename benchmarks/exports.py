"""What CTranslate2 exports of a run cost in each number type, and how fast they are.

    python benchmarks/exports.py RUN [--isa avx2] [--precisions float32 int8 ...] [--rounds 3] [--json]

RUN is a translator whose validation text is on this machine. Each export is scored as `manyheads export` does it:
up to 500 validation sentences, the run's own search, CTranslate2's default compute type, against float32. Speed is
that of translating those sentences; all exports translate them once a round, in turn.

    float32, int8, int16, ...    as `manyheads export --quantization` writes them
    int8:127                     CTranslate2's own rounding: the largest weight of a row becomes 127
    int8:63                      the same with 63, which leaves a bit unused

Limit the instruction set with --isa: kernels without VNNI saturate, which costs int8:127 most.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest import mock

import torch

import machine
import tiny
from manyheads.interop.bundle import LoadedModel, load_run
from manyheads.interop.ctranslate2 import quantize
from manyheads.interop.ctranslate2.convert import load_ctranslate2, write_ctranslate2
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.runs.corpus import available_pairs
from manyheads.runs.export_cost import QuantizationCost, compare_engines, search
from manyheads.training.log import NO_LISTENER

PRECISIONS = ["float32", "int8", "int8:127", "int8:63", "int8_bfloat16", "int16", "bfloat16", "float16"]


def rounding(largest: int) -> Any:
    """Return a function that rounds rows so that their largest weight becomes a number."""

    def round_rows(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = largest / weight.abs().amax(1).clamp(min=1e-30)
        return (weight * scale[:, None]).round().to(torch.int8), scale

    return round_rows


def write(folder: Path, opened: LoadedModel, precision: str) -> CTranslate2Engine:
    """Write and open an export."""
    folder.mkdir()
    numbers, _, largest = precision.partition(":")
    chosen = rounding(int(largest)) if largest else quantize.round_rows
    with mock.patch.object(quantize, "round_rows", chosen):
        write_ctranslate2(folder, opened.config, opened.tokenizers, opened.model, numbers)
    return load_ctranslate2(folder)[1]


def speeds(opened: LoadedModel, engines: dict[str, CTranslate2Engine], rounds: int) -> dict[str, list[float]]:
    """Sentences a second of each export in each round."""
    pairs = available_pairs(opened.config, "valid", 500)
    most = opened.config.model.max_positions - 1
    rows = [row[:most] for row in opened.tokenizers.source.encode([pair.source for pair in pairs])]
    found: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, engine in engines.items():
            start = perf_counter()
            search(opened, engine, rows, lambda count: None)
            found[name].append(round(len(rows) / (perf_counter() - start), 1))
    return found


def row(precision: str, cost: QuantizationCost, speed: list[float], size: int) -> dict[str, Any]:
    """Return the figures of an export."""
    bleu = cost.bleu
    assert bleu is not None
    return {
        "export": precision,
        "computed in": cost.compute_type,
        "BLEU": round(bleu.score, 2),
        "cost": round(0 - bleu.difference, 2),
        "interval": [round(0 - end, 2) for end in reversed(bleu.interval)],
        "loss": round(cost.loss, 4),
        "same": cost.same_outputs,
        "sentences": cost.sentences,
        "median": statistics.median(speed),
        "min": min(speed),
        "max": max(speed),
        "MiB": round(size / 2**20, 2),
        "signature": bleu.signature,
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Print a table."""
    head = f"{'export':14} {'computed in':13} {'BLEU':>6} {'cost':>6}  {'95 %':14}"
    print(f"{head} {'loss':>7} {'same':>5} {'sent/s':>7} {'MiB':>6}")
    for one in rows:
        span = "{:.2f} to {:.2f}".format(*one["interval"])
        print(
            f"{one['export']:14} {one['computed in']:13} {one['BLEU']:6.2f} {one['cost']:6.2f}  {span:14} "
            f"{one['loss']:7.4f} {one['same']:5} {one['median']:7} {one['MiB']:6}"
        )


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--precisions", nargs="+", default=PRECISIONS, choices=PRECISIONS, metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = machine.parse(parser, tiny={"rounds": 1}, required=["run"])
    with tempfile.TemporaryDirectory() as name:
        opened = load_run(tiny.train_run(Path(name)) if arguments.run is None else arguments.run)
        if not available_pairs(opened.config, "valid", 1):
            sys.exit(f"the validation text of {arguments.run} is not on this machine: look at its data.root")
        folder = Path(name) / "exports"
        folder.mkdir()
        names = list(dict.fromkeys(["float32", *arguments.precisions]))
        engines = {one: write(folder / one, opened, one) for one in names}
        costs = {
            one: compare_engines(opened, one.partition(":")[0], engines["float32"], engine, NO_LISTENER)
            for one, engine in engines.items()
        }
        speed = speeds(opened, engines, arguments.rounds)
        sizes = {one: (folder / one / "model.bin").stat().st_size for one in names}
        rows = [row(one, costs[one], speed[one], sizes[one]) for one in names]
    about = machine.about("ctranslate2")
    if arguments.json:
        print(json.dumps({"unit": "sentences/s", **about, "rows": rows}))
        return
    show(rows)
    print(machine.describe(about))


if __name__ == "__main__":
    main()
