"""Measure speed, memory and BLEU of decoding with the same weights in manyheads and its peers, in one run.

    python benchmarks/decode_peers.py RUN [--exports DIR] [--contenders manyheads:fp32 ctranslate2:int8 ...]
        [--modes single batch file] [--beams 1 5] [--rounds 3] [--sentences 1000] [--threads 2] [--joeynmt PYTHON]
        [--isa avx2|avx512] [--tokens N] [--json]

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
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from decoders.measured_decoding import BATCH, DecodingRequest, Rows
from harness import Document, main, option, spread
from manyheads.errors import ManyheadsError
from manyheads.evaluation import score
from manyheads.inference.translation.translator import Translator
from manyheads.runs.export import export
from manyheads.training.scored_text import ScoredText
from material import RUN
from peers.contender_process import ContenderProcess, Program, available

OURS = "manyheads:fp32"
MODES = ["single", "batch", "file"]
SLOW = {"no-cache": 10, "joeynmt": 10, "hugging-face": 2}  # decode a 10th or a half of the sentences


@dataclass(frozen=True)
class Decoder(Program):
    """A program that decodes.

    Attributes:
        variant: the argument of the module: a precision.
        export: the format of the export that it reads, if any.
        settings: workers x threads to try in mode "file".
        beams: whether it has a beam search.
    """

    variant: str = ""
    export: str | None = None
    settings: tuple[str, ...] = ("1x{threads}",)
    beams: bool = True


SIDE_BY_SIDE = ("1x{threads}", "{threads}x1")
DECODERS = {
    **{
        f"manyheads:{precision}": Decoder("decoders.manyheads_engine", "manyheads", variant=precision)
        for precision in ("fp32", "bf16", "int8")
    },
    **{
        f"ctranslate2:{kind}": Decoder(
            "decoders.ctranslate2_library",
            "ctranslate2",
            needs="ctranslate2",
            variant=kind,
            export="ctranslate2",
            settings=SIDE_BY_SIDE,
        )
        for kind in ("float32", "int8")
    },
    "hugging-face": Decoder("decoders.hugging_face", "transformers", needs="transformers", export="huggingface"),
    "joeynmt": Decoder("decoders.joeynmt_search", "joeynmt", own_python="joeynmt"),
    "no-cache": Decoder("decoders.no_cache", "torch", beams=False),
}


def write_exports(run: Path, folder: Path, names: Sequence[str]) -> list[str]:
    """Write the exports that the contenders read; return the contenders whose export succeeded."""
    exported = []
    for name in names:
        decoder = DECODERS[name]
        path = folder / "-".join(filter(None, (decoder.export, decoder.variant)))
        if decoder.export is not None and not path.exists():
            try:
                export(run, path, decoder.export, quantization=decoder.variant or None)
            except ManyheadsError as error:
                print(f"{name} is left out: {error}")
                continue
        exported.append(name)
    return exported


class Contender(ContenderProcess):
    def __init__(self, name: str, folder: Path, run: Path, threads: int, pythons: Mapping[str, str | None]) -> None:
        self.decoder = DECODERS[name]
        self.threads = threads
        arguments = [folder, run, self.decoder.variant]
        log = folder / f"{name.replace(':', '-')}.log"
        super().__init__(name, self.decoder, log, arguments, threads=threads, pythons=pythons)

    def settings(self, mode: str) -> list[str]:
        several = [setting.format(threads=self.threads) for setting in self.decoder.settings]
        return several if mode == "file" else sorted({"1x1", f"1x{self.threads}"})

    def decode(self, request: DecodingRequest) -> tuple[float, Rows]:
        answer = self.ask(json.dumps(asdict(request)))
        return answer["seconds"], answer["outputs"]


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
        seconds, self.outputs = self.contender.decode(self.request)
        self.speeds.append(len(self.outputs) / seconds)

    def row(self, ours: Measurement | None, references: list[str], translator: Translator) -> Document:
        tokenizer = translator.tokenizers.target
        outputs = [tokenizer.decode(output) for output in self.outputs]
        row = {
            "contender": self.contender.name,
            "mode": self.request.mode,
            "beam": self.request.beam,
            "workers x threads": self.request.setting,
            **spread(self.speeds, digits=1),
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


def run_rounds(measurements: list[Measurement], rounds: int) -> None:
    """Choose the settings of all measurements, then run all in turn in each round."""
    for measurement in measurements:
        measurement.try_settings()
    for _ in range(rounds):
        for measurement in measurements:
            measurement.run_round()


def measure_mode(
    contenders: list[Contender],
    request: DecodingRequest,
    references: list[str],
    translator: Translator,
    rounds: int,
) -> list[Document]:
    measurements = [
        Measurement(
            contender, replace(request, sentences=sentence_count(request.mode, contender.name, request.sentences))
        )
        for contender in contenders
        if request.beam == 1 or contender.decoder.beams
    ]
    run_rounds(measurements, rounds)
    ours = next((measurement for measurement in measurements if measurement.contender.name == OURS), None)
    rows = [measurement.row(ours, references, translator) for measurement in measurements]
    print(*rows, sep="\n")
    return rows


def measure(arguments: argparse.Namespace) -> Document:
    pythons, folder, run = {"joeynmt": arguments.joeynmt}, arguments.folder, arguments.run.resolve()
    translator = Translator.load(run, device="cpu")
    sources, references = (side[: arguments.sentences] for side in ScoredText().pairs(translator.config))
    (folder / "sources.json").write_text(json.dumps(translator.tokenizers.source.encode(sources)))
    exports = arguments.exports or folder / "made"
    exports.mkdir(exist_ok=True, parents=True)
    (folder / "exports").symlink_to(exports.resolve())
    installed = available({name: DECODERS[name] for name in arguments.contenders}, pythons)
    names = write_exports(run, exports, [*installed])
    rows = []
    with contextlib.ExitStack() as running:
        contenders = [
            running.enter_context(Contender(name, folder, run, arguments.threads, pythons)) for name in names
        ]
        for contender in contenders:
            contender.receive()  # ready
        for mode in arguments.modes:
            for beam in arguments.beams:
                request = DecodingRequest(mode, beam, "", len(references), arguments.tokens)
                rows += measure_mode(contenders, request, references, translator, arguments.rounds)
    return {
        "rows": rows,
        "left out": [name for name in arguments.contenders if name not in names],
        "versions": {contender.decoder.package: contender.version for contender in contenders},
    }


OPTIONS = {
    "run": RUN,
    "--exports": option(Path, "folder of the exports; missing ones are written (default: a temporary one)"),
    "--contenders": option(list(DECODERS), "what to measure", choices=list(DECODERS), metavar="NAME"),
    "--modes": option(MODES, "sentences a call", choices=MODES, tiny=["single", "file"]),
    "--beams": option([1, 5], "beam sizes", tiny=[1, 2]),
    "--rounds": option(3, "rounds", tiny=1),
    "--sentences": option(1000, "sentences of the test text", tiny=4),
    "--threads": option(2, "threads", tiny=1),
    "--tokens": option(0, "maximum length of an output; 0 is twice its source", metavar="N"),
    "--joeynmt": option(str, "Python with JoeyNMT and safetensors installed", metavar="PYTHON"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="sentences/s")
