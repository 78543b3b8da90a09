"""Measure speed, memory and BLEU of decoding with the same weights in manyheads and its peers, in one run.

    python benchmarks/decode_peers.py RUN [--exports DIR] [--contenders manyheads:fp32 ctranslate2:int8 ...]
        [--modes single batch file] [--beams 1 5] [--rounds 3] [--sentences 1000] [--threads 2] [--joeynmt PYTHON]
        [--isa avx2|avx512] [--tokens N] [--json]
    python benchmarks/decode_peers.py --tiny

RUN is a run directory whose model every toolkit can represent: post-norm with sinusoidal positions for Hugging Face
MarianMT and JoeyNMT; without them, any. It is exported to DIR, or a temporary folder, unless it is there already.
Each contender decodes the test text of the run, from ids to ids.

    manyheads:fp32, :bf16, :int8    its own search, which distributes the batches of a call over the threads
    ctranslate2:float32, :int8      the library itself, batches of 64
    hugging-face                    MarianMTModel.generate in fp32
    joeynmt                         its search, which has no cache, with the Python of the option, as it needs
                                    other packages
    no-cache                        the loop of the tutorials: no KV cache, the whole prefix at each step; greedy

    single   one sentence a call, every tenth of the sentences
    batch    64 sentences a call, in the order of the text
    file     all in one call; where a toolkit makes no batches of its own, batches of 64 of like length

Each contender is a process of its own. In a mode it first decodes a part of the text with each number of workers
and threads that can be the best one, which also warms it up; then, in each round, all contenders decode the text
one after the other, each with its best. A ratio is the median over the rounds. Memory is the largest resident size
of the process up to then. With --tokens, outputs have at most so many tokens, in manyheads and CTranslate2: the
outputs of a model that was not trained do not end, and then have equal lengths. BLEU is that of the sentences of a
round, detokenised; agreement the share of outputs that are the same as those of manyheads:fp32.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import machine
from decoders.contender import DECODERS, Contender
from decoders.measured_decoding import BATCH, DecodingRequest, Rows
from manyheads.errors import ManyheadsError
from manyheads.evaluation import score
from manyheads.inference.translation.translator import Translator
from manyheads.runs.export import export
from manyheads.training.scored_text import ScoredText
from tiny import train_run

OURS = "manyheads:fp32"
MODES = ("single", "batch", "file")
SLOW = {
    "no-cache": 10,
    "joeynmt": 10,
    "hugging-face": 2,
}  # decode only a 10th or a half of the sentences: a rate is measured
EXPORTS = {"ctranslate2-float32": "ctranslate2", "ctranslate2-int8": "ctranslate2", "huggingface": "huggingface"}


def available(contenders: list[str], pythons: dict[str, str | None]) -> list[str]:
    """Return the contenders that can run here; print the others."""
    installed = []
    for name in contenders:
        needs = DECODERS[name].needs
        if DECODERS[name].own_python and pythons[name] is None:
            print(f"{name} is left out: name a Python that has it with --{name} PYTHON", file=sys.stderr)
        elif needs is not None and importlib.util.find_spec(needs) is None:
            print(f"{name} is left out: pip install {needs}", file=sys.stderr)
        else:
            installed.append(name)
    return installed


def write_exports(run: Path, folder: Path, contenders: list[str]) -> list[str]:
    """Write the exports that the contenders read; return the contenders whose export succeeded."""
    exported = []
    for name in contenders:
        export_name = DECODERS[name].export
        if export_name is not None and not (folder / export_name).exists():
            number_type = export_name.partition("-")[2] or None
            try:
                export(run, folder / export_name, EXPORTS[export_name], quantization=number_type)
            except ManyheadsError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                continue
        exported.append(name)
    return exported


class Measurement:
    """The measurement of a contender in one mode with one beam size.

    Attributes:
        request: the request of a round; `try_settings` chooses its workers x threads.
        speeds: sentences a second of each round.
        outputs: outputs of the last round.
    """

    def __init__(self, contender: Contender, request: DecodingRequest) -> None:
        self.contender = contender
        self.request = request
        self.speeds: list[float] = []
        self.outputs: Rows = []

    def try_settings(self) -> None:
        """Warm up, and choose the fastest number of workers and threads."""
        shorter = replace(self.request, sentences=max(1, self.request.sentences // 4))
        seconds = {}
        for setting in self.contender.settings(self.request.mode):
            trial = replace(shorter, setting=setting)
            self.contender.decode(trial)
            seconds[setting] = self.contender.decode(trial)[0]
        self.request = replace(self.request, setting=min(seconds, key=lambda setting: seconds[setting]))

    def run_round(self) -> None:
        """Decode the text once; store speed and outputs."""
        seconds, self.outputs = self.contender.decode(self.request)
        self.speeds.append(len(self.outputs) / seconds)

    def row(self, ours: Measurement | None, references: list[str], translator: Translator) -> dict[str, Any]:
        """Return the figures of all rounds."""
        tokenizer = translator.tokenizers.target
        outputs = [tokenizer.decode(output) for output in self.outputs]
        row: dict[str, Any] = {
            "contender": self.contender.name,
            "mode": self.request.mode,
            "beam": self.request.beam,
            "workers x threads": self.request.setting,
            "median": round(statistics.median(self.speeds), 1),
            "min": round(min(self.speeds), 1),
            "max": round(max(self.speeds), 1),
            "tokens an output": round(sum(map(len, self.outputs)) / len(self.outputs), 2),
            "sentences": len(self.outputs),
            "BLEU": round(score(outputs, references[: len(outputs)]).bleu, 2),
            "MiB": round(self.contender.mebibytes),
        }
        if ours is not None:
            ratios = [a / b for a, b in zip(ours.speeds, self.speeds, strict=True)]
            pairs = list(zip(ours.outputs, self.outputs, strict=False))
            row["manyheads:fp32 is"] = round(statistics.median(ratios), 2)
            row["agreement"] = round(sum(a == b for a, b in pairs) / len(pairs), 3)
        return row


def sentence_count(mode: str, contender: str, count: int) -> int:
    """Return the number of sentences that a contender decodes in a round."""
    fewer = count // (SLOW.get(contender, 1) * (10 if mode == "single" else 1))
    return max(fewer, min(count, 20 if mode == "single" else 2 * BATCH))


def measure(measurements: list[Measurement], rounds: int) -> None:
    """Choose the settings of all measurements, then run all in turn in each round."""
    for measurement in measurements:
        measurement.try_settings()
    for _ in range(rounds):
        for measurement in measurements:
            measurement.run_round()


def print_table(rows: list[dict[str, Any]], file: TextIO = sys.stdout) -> None:
    """Print the rows as a table."""
    heading = f"{'mode':6} {'beam':>4} {'w x t':>5} {'sentences/s':>11}  {'[min to max]':20} {'ours is':>8}"
    print(f"{'':22} {heading} {'BLEU':>6} {'same':>6} {'MiB':>6}", file=file)
    for row in rows:
        span = f"[{row['min']:,} to {row['max']:,}]"
        search = f"{row['mode']:6} {row['beam']:4} {row['workers x threads']:>5}"
        speed = f"{row['median']:11,}  {span:20} {row.get('manyheads:fp32 is', ''):>7}x"
        quality = f"{row['BLEU']:6.2f} {row.get('agreement', ''):>6} {row['MiB']:6,}"
        print(f"{row['contender']:22} {search} {speed} {quality}", file=file)


def parse_arguments() -> argparse.Namespace:
    parser = machine.parser(__doc__)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument(
        "--exports",
        type=Path,
        metavar="DIR",
        help="folder of the exports; missing exports are written (default: a temporary folder)",
    )
    parser.add_argument("--contenders", nargs="+", default=list(DECODERS), choices=list(DECODERS), metavar="NAME")
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 5])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=0, metavar="N", help="maximum length of an output")
    parser.add_argument("--joeynmt", metavar="PYTHON", help="Python with JoeyNMT and safetensors installed")
    tiny = {"modes": ["single", "file"], "beams": [1, 2], "rounds": 1, "sentences": 4, "threads": 1}
    return machine.parse(parser, tiny=tiny, required=["run"])


def measure_all(
    contenders: list[Contender], references: list[str], translator: Translator, arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Measure all modes and beams; print the rows of each, and return all rows."""
    rows = []
    for mode in arguments.modes:
        for beam in arguments.beams:
            measurements = [
                Measurement(
                    contender,
                    DecodingRequest(
                        mode, beam, "", sentence_count(mode, contender.name, len(references)), arguments.tokens
                    ),
                )
                for contender in contenders
                if beam == 1 or contender.decoder.beams
            ]
            measure(measurements, arguments.rounds)
            ours = next((measurement for measurement in measurements if measurement.contender.name == OURS), None)
            rows_of_mode = [measurement.row(ours, references, translator) for measurement in measurements]
            rows += rows_of_mode
            print_table(rows_of_mode, sys.stderr)
    return rows


def main() -> None:
    arguments = parse_arguments()
    pythons = {"joeynmt": arguments.joeynmt}
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as running:
        folder = Path(temporary)
        run = (arguments.run or train_run(folder)).resolve()
        translator = Translator.load(run, device="cpu")
        sources, references = ScoredText().pairs(translator.config)
        sources, references = sources[: arguments.sentences], references[: arguments.sentences]
        (folder / "sources.json").write_text(json.dumps(translator.tokenizers.source.encode(sources)))
        exports = arguments.exports or folder / "made"
        exports.mkdir(exist_ok=True, parents=True)
        (folder / "exports").symlink_to(exports.resolve())
        names = write_exports(run, exports, available(arguments.contenders, pythons))
        contenders = [
            running.enter_context(Contender(name, folder, run, arguments.threads, pythons.get(name)))
            for name in names
        ]
        for contender in contenders:
            contender.receive()  # ready
        rows = measure_all(contenders, references, translator, arguments)
    about = machine.about(threads=arguments.threads)
    about["versions"] |= {contender.decoder.package: contender.version for contender in contenders}
    if arguments.json:
        left_out = [name for name in arguments.contenders if name not in names]
        print(json.dumps({"unit": "sentences/s", **about, "rows": rows, "left out": left_out}))
        return
    print(machine.describe(about))
    print_table(rows)


if __name__ == "__main__":
    main()
