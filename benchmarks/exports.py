"""Measure the cost in BLEU and the speed of CTranslate2 exports of a run in each number type.

    python benchmarks/exports.py RUN [--isa avx2] [--precisions float32 int8 ...] [--rounds 3] [--json]

RUN is a translator whose validation text is on this machine. Each export translates up to 500 validation sentences
with the settings of the run and CTranslate2's default compute type, and is compared with float32. All exports
translate them once a round, in turn.

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
from manyheads.checkpoint.bundle import LoadedModel
from manyheads.data.training_text import available_pairs
from manyheads.evaluation import BootstrapResult, paired_bootstrap
from manyheads.inference.translation.translator import Translator
from manyheads.interop.ctranslate2 import quantize
from manyheads.interop.ctranslate2.convert import load_ctranslate2, write_ctranslate2
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.tensors.models import load_run

PRECISIONS = ["float32", "int8", "int8:127", "int8:63", "int8_bfloat16", "int16", "bfloat16", "float16"]


def rounding(largest: int) -> Any:
    """Return a function that rounds rows to int8 so that the largest weight of each becomes a number."""

    def round_rows(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = largest / weight.abs().amax(1).clamp(min=1e-30)
        return (weight * scale[:, None]).round().to(torch.int8), scale

    return round_rows


def write_export(folder: Path, loaded: LoadedModel, precision: str) -> CTranslate2Engine:
    """Write an export of a precision, open it and return its engine."""
    folder.mkdir()
    number_type, _, largest = precision.partition(":")
    round_rows = rounding(int(largest)) if largest else quantize._round_rows
    with mock.patch.object(quantize, "_round_rows", round_rows):
        write_ctranslate2(folder, loaded.config, loaded.tokenizers, loaded.model, number_type)
    return load_ctranslate2(folder)[1]


def measure_speeds(translators: dict[str, Translator], sources: list[str], rounds: int) -> dict[str, list[float]]:
    """Return the sentences a second of each export in each round."""
    speeds: dict[str, list[float]] = {name: [] for name in translators}
    for _ in range(rounds):
        for name, translator in translators.items():
            start = perf_counter()
            translator.translate(sources)
            speeds[name].append(round(len(sources) / (perf_counter() - start), 1))
    return speeds


def export_row(
    precision: str, engine: CTranslate2Engine, bleu: BootstrapResult, same: int, speeds: list[float]
) -> dict[str, Any]:
    """Return the figures of an export."""
    return {
        "export": precision,
        "computed in": engine.compute_type,
        "BLEU": round(bleu.score, 2),
        "cost": round(0 - bleu.difference, 2),
        "interval": [round(0 - end, 2) for end in reversed(bleu.interval)],
        "same": same,
        "sentences": bleu.lines,
        "median": statistics.median(speeds),
        "min": min(speeds),
        "max": max(speeds),
        "MiB": round((engine.folder / "model.bin").stat().st_size / 2**20, 2),
        "signature": bleu.signature,
    }


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print a table."""
    head = f"{'export':14} {'computed in':13} {'BLEU':>6} {'cost':>6}  {'95 %':14}"
    print(f"{head} {'same':>5} {'sent/s':>7} {'MiB':>6}")
    for row in rows:
        span = "{:.2f} to {:.2f}".format(*row["interval"])
        print(
            f"{row['export']:14} {row['computed in']:13} {row['BLEU']:6.2f} {row['cost']:6.2f}  {span:14} "
            f"{row['same']:5} {row['median']:7} {row['MiB']:6}"
        )


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--precisions", nargs="+", default=PRECISIONS, choices=PRECISIONS, metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = machine.parse(parser, tiny={"rounds": 1}, required=["run"])
    with tempfile.TemporaryDirectory() as temporary:
        loaded = load_run(tiny.train_run(Path(temporary)) if arguments.run is None else arguments.run)
        pairs = available_pairs(loaded.config, "valid", 500)
        if not pairs:
            sys.exit(f"the validation text of {arguments.run} is not on this machine: look at its data.root")
        folder = Path(temporary) / "exports"
        folder.mkdir()
        names = list(dict.fromkeys(["float32", *arguments.precisions]))
        engines = {precision: write_export(folder / precision, loaded, precision) for precision in names}
        translators = {
            precision: Translator(loaded.config, loaded.tokenizers, engine) for precision, engine in engines.items()
        }
        sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
        outputs = {
            precision: [result.translation for result in translator.translate(sources)]
            for precision, translator in translators.items()
        }
        speeds = measure_speeds(translators, sources, arguments.rounds)
        rows = []
        for precision, engine in engines.items():
            own, plain = outputs[precision], outputs["float32"]
            bleu = paired_bootstrap(own, plain, references, language=loaded.config.data.target)
            same = sum(output == other for output, other in zip(own, plain, strict=True))
            rows.append(export_row(precision, engine, bleu, same, speeds[precision]))
    about = machine.about("ctranslate2")
    if arguments.json:
        print(json.dumps({"unit": "sentences/s", **about, "rows": rows}))
        return
    print_table(rows)
    print(machine.describe(about))


if __name__ == "__main__":
    main()
