"""Measure how fast a run translates on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.data.locate import Split
from manyheads.errors import UsageError
from manyheads.evaluation.verdicts import verdict_lines
from manyheads.runs.bench_train import Speed, machine
from manyheads.tasks.scored_text import ScoredText
from manyheads.tasks.translation.translator import Translator
from manyheads.training.log import Listener
from manyheads.training.memory import keep_decoding_small
from manyheads.training.precision import synchronise

_SINGLE_SHARE = 10  # with one sentence a call, every tenth sentence is translated, because it takes so much longer


@dataclass(frozen=True)
class ModeSpeed:
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

    def line(self) -> str:
        """Return a line of text."""
        calls = f"{self.batch} a call" if self.batch else "all in one call"
        return (
            f"beam {self.beam_size}, {calls}: {self.median:,.1f} sentences/s ({self.min:,.1f} to {self.max:,.1f}), "
            f"{self.tokens_per_second:,.0f} target tokens/s"
        )


@dataclass(frozen=True, kw_only=True)
class DecodingSpeed(Speed):
    """Decoding speed of a run: the speed of the fastest mode with the beam size of the run.

    Attributes:
        modes: each combination of beam size and batch size.
        beam_size: beam size of the fastest mode.
    """

    unit: str = "sentences/s"
    modes: list[ModeSpeed]
    beam_size: int

    def lines(self) -> list[str]:
        """Return lines of text."""
        return [
            *(mode.line() for mode in self.modes),
            f"{self.parameters:,} parameters, {self.precision}, {self.device}, {self.threads} threads, "
            f"{self.peak_memory_mib:,.0f} MiB at most",
            *verdict_lines(self.verdict()),
        ]


def bench_decode(
    run: Path,
    *,
    precision: str = "fp32",
    device: str = "auto",
    beams: Sequence[int] = (),
    batches: Sequence[int] = (1, 64, 0),
    sentences: int = 500,
    rounds: int = 3,
    listener: Listener,
) -> DecodingSpeed:
    """Measure the decoding speed of a run on its test text (validation text if it has no test text).

    Args:
        run: run directory.
        precision: "fp32", "bf16" or "int8".
        device: device, as in `Translator.load`.
        beams: beam sizes (default: 1 and the beam size of the run).
        batches: numbers of sentences a call; 0 is all in one call, as a file is translated.
        sentences: number of sentences of the text; with one a call, every tenth of them is used.
        rounds: number of measurements of each mode, after one round of warm-up.
        listener: receives messages.

    Raises:
        RunError, DataError, UsageError: see the message.
    """
    if rounds < 1 or sentences < 1:
        raise UsageError(f"{rounds} rounds of {sentences} sentences measure nothing. Ask for at least one of each.")
    keep_decoding_small()
    translator = Translator.load(run, device=device, precision=precision)
    if translator.config.data.pairs:  # the first direction of several
        translator = translator.to(*translator.config.directions[0][::-1])
    split: Split = "valid" if translator.config.data.test is None else "test"
    sources = ScoredText(split).pairs(translator.config)[0][:sentences]
    own = translator.config.search.beam_size
    timed: dict[tuple[int, int], list[tuple[float, int]]] = {
        (beam, batch): [] for beam in beams or sorted({1, own}) for batch in batches
    }
    rounds_of_modes = [(number, mode) for number in range(rounds + 1) for mode in timed]
    with listener.phase("measuring", len(rounds_of_modes), "measurements") as advance:
        for number, (beam, batch) in rounds_of_modes:
            seconds, tokens = _time_mode(translator, _choose(sources, batch), beam, batch)
            advance(1)
            if number:  # the first round warms up
                timed[beam, batch].append((seconds, tokens))
                speed = len(_choose(sources, batch)) / seconds
                mode = f"beam {beam}, batch {batch or 'all'}"
                listener.message(f"round {number} of {rounds}, {mode}: {speed:,.1f} sentences/s")
    modes = [
        _summarise(beam, batch, len(_choose(sources, batch)), results) for (beam, batch), results in timed.items()
    ]
    best = max((mode for mode in modes if mode.beam_size == own), key=lambda mode: mode.median, default=modes[-1])
    return DecodingSpeed(
        median=best.median,
        min=best.min,
        max=best.max,
        modes=modes,
        beam_size=best.beam_size,
        precision=precision,
        **machine(translator.model, translator.model.output.weight.device),
    )


def _choose(sources: Sequence[str], batch: int) -> Sequence[str]:
    """Return the sentences to translate with `batch` sentences a call."""
    return sources[::_SINGLE_SHARE] if batch == 1 else sources


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


def _summarise(beam: int, batch: int, sentences: int, results: Sequence[tuple[float, int]]) -> ModeSpeed:
    """Return the speeds of all rounds, each given by its seconds and tokens."""
    speeds = [sentences / seconds for seconds, _ in results]
    median, (_, tokens) = statistics.median(speeds), results[-1]
    return ModeSpeed(beam, batch, median, min(speeds), max(speeds), median * tokens / sentences, sentences)
