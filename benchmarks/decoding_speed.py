"""Measure how fast a run translates on this machine.

    python benchmarks/decoding_speed.py RUN [--precision fp32] [--beam 1 5] [--batch 1 64 0] [--rounds 3] [--json]

Translates the test text of RUN (validation text if it has no test text) with each beam size and each number of
sentences a call; 0 is all in one call, as a file is translated. Prints sentences/s, tokenisation included, and
target tokens/s, end symbols counted: median and range of the rounds, after a round of warm-up.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

from bitext.file_names import Split
from harness import Document, in_turn, main, option, spread
from manyheads.allocator import keep_decoding_small
from manyheads.inference.translation.translator import Translator
from manyheads.tensors.devices import synchronise
from manyheads.training.scored_text import ScoredText
from material import RUN

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
    modes = [(beam, batch) for beam in beams for batch in batches]
    chosen = {mode: sources[::SINGLE_SHARE] if mode[1] == 1 else sources for mode in modes}
    tokens: dict[tuple[int, int], int] = {}

    def translate(mode: tuple[int, int]) -> None:
        tokens[mode] = _count_tokens(translator, chosen[mode], *mode)

    timed = in_turn({mode: partial(translate, mode) for mode in modes}, rounds)
    results = []
    for mode, seconds in timed.items():
        count = len(chosen[mode])
        speeds = spread([count / value for value in seconds], digits=6)
        results.append(
            Mode(*mode, **speeds, tokens_per_second=speeds["median"] * tokens[mode] / count, sentences=count)
        )
    return results


def _count_tokens(translator: Translator, sources: Sequence[str], beam: int, batch: int) -> int:
    """Translate sentences, `batch` of them a call; return the number of tokens of the best hypotheses."""
    size, tokens = batch or len(sources), 0
    for first in range(0, len(sources), size):
        for result in translator.translate(sources[first : first + size], beam_size=beam):
            tokens += sum(len(hypothesis.tokens) for hypothesis in result.hypotheses[:1])
    synchronise(translator.model.output.weight.device)
    return tokens


def measure(arguments: argparse.Namespace) -> Document:
    keep_decoding_small()
    modes = measure_decoding(
        Translator.load(arguments.run, device=arguments.device, precision=arguments.precision),
        beams=arguments.beam,
        batches=arguments.batch,
        sentences=arguments.sentences,
        rounds=arguments.rounds,
    )
    return {"rows": [asdict(mode) for mode in modes]}


OPTIONS = {
    "run": RUN,
    "--precision": option("fp32", "number format", choices=["fp32", "bf16", "int8"]),
    "--device": option("auto", "cpu, cuda, cuda:1 or auto, a GPU if there is one"),
    "--beam": option(int, "beam sizes (default: 1 and the run's)", nargs="+", default=[]),
    "--batch": option([1, 64, 0], "sentences a call; 0 is all"),
    "--sentences": option(500, "sentences of the text", tiny=4),
    "--rounds": option(3, "measurements of each mode", tiny=1),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="sentences/s")
