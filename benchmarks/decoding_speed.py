"""Measure how fast a run translates on this machine.

    python benchmarks/decoding_speed.py RUN [--precision fp32] [--beam 1 5] [--batch 1 64 0] [--rounds 3] [--json]

Translates the test text of RUN (validation text if it has no test text) with each beam size and each number of
sentences a call; 0 is all in one call, as a file is translated. Prints sentences/s, tokenisation included, and
target tokens/s, end symbols counted: median and range of the rounds, after a round of warm-up.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import machine
from bitext.file_names import Split
from manyheads.allocator import keep_decoding_small
from manyheads.config.load import load_config, resolve_recipe
from manyheads.inference.translation.translator import Translator
from manyheads.runs.train import train
from manyheads.tensors.devices import synchronise
from manyheads.training.scored_text import ScoredText
from tiny import SMALLEST, write_pairs

SINGLE_SHARE = 10  # with one sentence a call, every tenth sentence is translated, because it takes so much longer


@dataclass(frozen=True)
class Mode:
    """Decoding speed with one beam size and batch size.

    Attributes:
        beam_size: beam size; 1 is greedy search.
        batch: number of sentences a call, in the order of the text; 0 is all of them.
        median, min, max: sentences/s over the rounds, tokenisation included.
        tokens_per_second: target tokens/s at the median, end symbols counted.
        sentences: number of sentences a round.
    """

    beam_size: int
    batch: int
    median: float
    min: float
    max: float
    tokens_per_second: float
    sentences: int


def measure_decoding(
    translator: Translator,
    *,
    beams: Sequence[int] = (),
    batches: Sequence[int] = (1, 64, 0),
    sentences: int = 500,
    rounds: int = 3,
) -> list[Mode]:
    """Measure a translator of a run, the first direction of several; beams are 1 and its own by default."""
    if translator.config.data.pairs:
        source, target = translator.config.directions[0]
        translator = translator.to(source=source, target=target)
    split: Split = "valid" if translator.config.data.test is None else "test"
    sources = ScoredText(split).pairs(translator.config)[0][:sentences]
    beams = beams or sorted({1, translator.config.search.beam_size})
    timed: dict[tuple[int, int], list[tuple[float, int]]] = {
        (beam, batch): [] for beam in beams for batch in batches
    }
    for number in range(rounds + 1):
        for (beam, batch), results in timed.items():
            result = _time_mode(translator, _choose(sources, batch), beam, batch)
            if number:  # the first round warms up
                results.append(result)
    return [_summarise(*mode, len(_choose(sources, mode[1])), results) for mode, results in timed.items()]


def _choose(sources: Sequence[str], batch: int) -> Sequence[str]:
    """Return the sentences to translate with `batch` sentences a call."""
    return sources[::SINGLE_SHARE] if batch == 1 else sources


def _time_mode(translator: Translator, sources: Sequence[str], beam: int, batch: int) -> tuple[float, int]:
    """Translate all sentences; return the time in seconds, and the number of tokens of the best hypotheses."""
    device, size, tokens = translator.model.output.weight.device, batch or len(sources), 0
    synchronise(device)
    start = time.perf_counter()
    for first in range(0, len(sources), size):
        for result in translator.translate(sources[first : first + size], beam_size=beam):
            tokens += sum(len(hypothesis.tokens) for hypothesis in result.hypotheses[:1])
    synchronise(device)
    return time.perf_counter() - start, tokens


def _summarise(beam: int, batch: int, sentences: int, results: Sequence[tuple[float, int]]) -> Mode:
    """Return the speeds of all rounds, each given by its seconds and tokens."""
    speeds = [sentences / seconds for seconds, _ in results]
    median, (_, tokens) = statistics.median(speeds), results[-1]
    return Mode(beam, batch, median, min(speeds), max(speeds), median * tokens / sentences, sentences)


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("run", nargs="?", type=Path, help="run directory")
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32", help="default fp32")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1 (default: a GPU if there is one)")
    parser.add_argument("--beam", type=int, nargs="+", default=(), help="beam sizes (default: 1 and the run's)")
    parser.add_argument("--batch", type=int, nargs="+", default=(1, 64, 0), help="sentences a call")
    parser.add_argument("--sentences", type=int, default=500, help="sentences of the text (default 500)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each mode (default 3)")
    arguments = machine.parse(parser, tiny={"rounds": 1, "sentences": 4}, required=["run"])
    with tempfile.TemporaryDirectory() as folder:
        report(arguments, arguments.run or _tiny_run(Path(folder)))


def _tiny_run(folder: Path) -> Path:
    overrides = [f"data.root={write_pairs(folder, valid='val')}", *SMALLEST]
    train(load_config(resolve_recipe("multi30k-de-en"), overrides), folder / "run")
    return folder / "run"


def report(arguments: argparse.Namespace, run: Path) -> None:
    """Measure a run as the arguments say, and print the figures."""
    keep_decoding_small()
    translator = Translator.load(run, device=arguments.device, precision=arguments.precision)
    modes = measure_decoding(
        translator,
        beams=arguments.beam,
        batches=arguments.batch,
        sentences=arguments.sentences,
        rounds=arguments.rounds,
    )
    about = machine.about()
    if arguments.json:
        print(json.dumps({"unit": "sentences/s", **about, "rows": [asdict(mode) for mode in modes]}))
        return
    print(machine.describe(about))
    for mode in modes:
        calls = f"{mode.batch} a call" if mode.batch else "all in one call"
        print(
            f"beam {mode.beam_size}, {calls}: {mode.median:,.1f} sentences/s ({mode.min:,.1f} to {mode.max:,.1f}), "
            f"{mode.tokens_per_second:,.0f} target tokens/s"
        )


if __name__ == "__main__":
    main()
