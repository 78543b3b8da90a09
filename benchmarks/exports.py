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

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from harness import Document, in_turn, main, option, spread
from manyheads.checkpoint.bundle import LoadedModel
from manyheads.data.training_text import available_pairs
from manyheads.evaluation import paired_bootstrap
from manyheads.inference.translation.translator import Translator
from manyheads.interop.ctranslate2 import quantize
from manyheads.interop.ctranslate2.convert import load_ctranslate2, write_ctranslate2
from manyheads.interop.ctranslate2.engine import CTranslate2Engine
from manyheads.tensors.models import load_run
from material import RUN

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


def measure(arguments: argparse.Namespace) -> Document:
    loaded = load_run(arguments.run)
    pairs = available_pairs(loaded.config, "valid", 500)
    if not pairs:
        sys.exit(f"the validation text of {arguments.run} is not on this machine: look at its data.root")
    exports = arguments.folder / "exports"
    exports.mkdir()
    names = list(dict.fromkeys(["float32", *arguments.precisions]))
    engines = {name: write_export(exports / name, loaded, name) for name in names}
    translators = {name: Translator(loaded.config, loaded.tokenizers, engine) for name, engine in engines.items()}
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    outputs = {
        name: [result.translation for result in translator.translate(sources)]
        for name, translator in translators.items()
    }
    sides = {name: partial(translator.translate, sources) for name, translator in translators.items()}
    seconds = in_turn(sides, arguments.rounds, warm_up=0)
    rows = []
    for name, engine in engines.items():
        own, plain = outputs[name], outputs["float32"]
        bleu = paired_bootstrap(own, plain, references, language=loaded.config.data.target)
        rows.append(
            {
                "export": name,
                "computed in": engine.compute_type,
                "BLEU": round(bleu.score, 2),
                "cost": round(0 - bleu.difference, 2),
                "interval": [round(0 - end, 2) for end in reversed(bleu.interval)],
                "same": sum(output == other for output, other in zip(own, plain, strict=True)),
                "sentences": bleu.lines,
                **spread([len(sources) / value for value in seconds[name]], digits=1),
                "MiB": round((engine.folder / "model.bin").stat().st_size / 2**20, 2),
                "signature": bleu.signature,
            }
        )
    return {"rows": rows}


OPTIONS = {
    "run": RUN,
    "--precisions": option(PRECISIONS, "exports to measure beside float32", choices=PRECISIONS, metavar="NAME"),
    "--rounds": option(3, "measurements of the speed", tiny=1),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="sentences/s", packages=["ctranslate2"])
