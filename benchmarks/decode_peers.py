"""Speed, memory and BLEU of decoding with the same weights in manyheads and its peers, in turn in one run.

    python benchmarks/decode_peers.py RUN [--exports DIR] [--contenders manyheads:fp32 ctranslate2:int8 ...]
        [--modes single batch file] [--beams 1 5] [--rounds 3] [--sentences 1000] [--threads 2] [--joeynmt PYTHON]
        [--isa avx2|avx512] [--json]
    python benchmarks/decode_peers.py --tiny

RUN is a run directory whose model every toolkit can represent: post-norm with sinusoidal positions for Hugging Face
MarianMT and JoeyNMT; without them, any. It is exported to DIR, or a temporary folder, unless it is there already.
What is decoded is the run's test text, from ids to ids.

    manyheads:fp32, :bf16, :int8    its own search, which shares out the batches of a call among the threads
    manyheads:ctranslate2           CTranslate2 behind its interface (`--engine ctranslate2`)
    ctranslate2:float32, :int8      the library itself, batches of 64
    hugging-face                    MarianMTModel.generate in fp32
    joeynmt                         its search, which has no cache, with the Python of the option, as it needs
                                    other packages
    no-cache                        the loop of the tutorials: the whole prefix again at each step; greedy

    single   one sentence a call, every tenth of the sentences
    batch    64 sentences a call, in the order of the text
    file     all in one call; where a toolkit makes no batches of its own, batches of 64 of like length

Each contender is a process of its own. In a mode it first decodes a part of the text with each number of workers
and threads that can be the best one, which also warms it up; then, in each round, all contenders decode the text
one after the other, each with its best. A ratio is the median over the rounds. Memory is the largest resident size
of the process up to then. BLEU is that of the sentences of a round, detokenised; agreement the share of outputs
that are the same as those of manyheads:fp32.
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
from manyheads.runs.evaluate import texts
from manyheads.runs.export import export as export_run
from manyheads.tasks.translation import Translator
from tiny import train_run

OURS = "manyheads:fp32"
MODES = ("single", "batch", "file")
SLOW = {"no-cache": 10, "joeynmt": 10, "hugging-face": 2}  # only every n-th part: what is measured is a rate
EXPORTS = {"ctranslate2-float32": "ctranslate2", "ctranslate2-int8": "ctranslate2", "huggingface": "huggingface"}


def available(contenders: list[str], pythons: dict[str, str | None]) -> list[str]:
    """Return the contenders that can run here; print the others."""
    found = []
    for name in contenders:
        needs = DECODERS[name].needs
        if DECODERS[name].own_python and pythons[name] is None:
            print(f"{name} is left out: name a Python that has it with --{name} PYTHON", file=sys.stderr)
        elif needs is not None and importlib.util.find_spec(needs) is None:
            print(f"{name} is left out: pip install {needs}", file=sys.stderr)
        else:
            found.append(name)
    return found


def export(run: Path, folder: Path, contenders: list[str]) -> list[str]:
    """Write the exports that the contenders read; return the contenders whose export succeeded."""
    kept = []
    for name in contenders:
        wanted = DECODERS[name].export
        if wanted is not None and not (folder / wanted).exists():
            numbers = wanted.partition("-")[2] or None
            try:
                export_run(run, folder / wanted, EXPORTS[wanted], quantization=numbers)
            except ManyheadsError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                continue
        kept.append(name)
    return kept


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
        few = replace(self.request, sentences=max(1, self.request.sentences // 4))
        seconds = {}
        for setting in self.contender.settings(self.request.mode):
            trial = replace(few, setting=setting)
            self.contender.decode(trial)
            seconds[setting] = self.contender.decode(trial)[0]
        self.request = replace(self.request, setting=min(seconds, key=lambda one: seconds[one]))

    def run_round(self) -> None:
        """Decode the text once, and store speed and outputs."""
        seconds, self.outputs = self.contender.decode(self.request)
        self.speeds.append(len(self.outputs) / seconds)

    def row(self, ours: Measurement | None, references: list[str], translator: Translator) -> dict[str, Any]:
        """Return the figures of all rounds."""
        tokenizer = translator.tokenizers.target
        found = [tokenizer.decode(output) for output in self.outputs]
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
            "BLEU": round(score(found, references[: len(found)]).bleu, 2),
            "MiB": round(self.contender.mebibytes),
        }
        if ours is not None:
            ratios = [a / b for a, b in zip(ours.speeds, self.speeds, strict=True)]
            pairs = list(zip(ours.outputs, self.outputs, strict=False))
            row["manyheads:fp32 is"] = round(statistics.median(ratios), 2)
            row["agreement"] = round(sum(a == b for a, b in pairs) / len(pairs), 3)
        return row


def sentences(mode: str, contender: str, count: int) -> int:
    """Return the number of sentences that a contender decodes in a round."""
    fewer = count // (SLOW.get(contender, 1) * (10 if mode == "single" else 1))
    return max(fewer, min(count, 20 if mode == "single" else 2 * BATCH))


def measure(measurements: list[Measurement], rounds: int) -> None:
    """Measure all in turn, in each round."""
    for measurement in measurements:
        measurement.try_settings()
    for _ in range(rounds):
        for measurement in measurements:
            measurement.run_round()


def show(rows: list[dict[str, Any]], file: TextIO = sys.stdout) -> None:
    """Print a table."""
    head = f"{'mode':6} {'beam':>4} {'w x t':>5} {'sentences/s':>11}  {'[min to max]':20} {'ours is':>8}"
    print(f"{'':22} {head} {'BLEU':>6} {'same':>6} {'MiB':>6}", file=file)
    for row in rows:
        span = f"[{row['min']:,} to {row['max']:,}]"
        way = f"{row['mode']:6} {row['beam']:4} {row['workers x threads']:>5}"
        speed = f"{row['median']:11,}  {span:20} {row.get('manyheads:fp32 is', ''):>7}x"
        rest = f"{row['BLEU']:6.2f} {row.get('agreement', ''):>6} {row['MiB']:6,}"
        print(f"{row['contender']:22} {way} {speed} {rest}", file=file)


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
    parser.add_argument("--joeynmt", metavar="PYTHON", help="Python with JoeyNMT and safetensors installed")
    tiny = {"modes": ["single", "file"], "beams": [1, 2], "rounds": 1, "sentences": 4, "threads": 1}
    return machine.parse(parser, tiny=tiny, required=["run"])


def measure_all(
    contenders: list[Contender], references: list[str], translator: Translator, arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """The rows of all modes and beams, shown as they come."""
    rows = []
    for mode in arguments.modes:
        for beam in arguments.beams:
            measurements = [
                Measurement(one, DecodingRequest(mode, beam, "", sentences(mode, one.name, len(references))))
                for one in contenders
                if beam == 1 or one.decoder.beams
            ]
            measure(measurements, arguments.rounds)
            ours = next((measurement for measurement in measurements if measurement.contender.name == OURS), None)
            found = [measurement.row(ours, references, translator) for measurement in measurements]
            rows += found
            show(found, sys.stderr)
    return rows


def main() -> None:
    arguments = parse_arguments()
    pythons = {"joeynmt": arguments.joeynmt}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running:
        folder = Path(name)
        run = (arguments.run or train_run(folder)).resolve()
        translator = Translator.load(run, device="cpu")
        sources, references = texts(translator.config, "test", None, None)
        sources, references = sources[: arguments.sentences], references[: arguments.sentences]
        (folder / "sources.json").write_text(json.dumps(translator.tokenizers.source.encode(sources)))
        exports = arguments.exports or folder / "made"
        exports.mkdir(exist_ok=True, parents=True)
        (folder / "exports").symlink_to(exports.resolve())
        names = export(run, exports, available(arguments.contenders, pythons))
        contenders = [
            running.enter_context(Contender(one, folder, run, arguments.threads, pythons.get(one))) for one in names
        ]
        for contender in contenders:
            contender.receive()  # ready
        rows = measure_all(contenders, references, translator, arguments)
    about = machine.about(threads=arguments.threads)
    about["versions"] |= {one.decoder.package: one.version for one in contenders}
    if arguments.json:
        left_out = [one for one in arguments.contenders if one not in names]
        print(json.dumps({"unit": "sentences/s", **about, "rows": rows, "left out": left_out}))
        return
    print(machine.describe(about))
    show(rows)


if __name__ == "__main__":
    main()
