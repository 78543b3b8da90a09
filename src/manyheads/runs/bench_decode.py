"""Measure how fast a run translates on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from manyheads.data.locate import Split
from manyheads.errors import UsageError
from manyheads.runs.bench_train import machine, versions
from manyheads.runs.evaluate import texts
from manyheads.tasks.translation import Translator
from manyheads.training.log import Listener
from manyheads.training.memory import keep_decoding_small
from manyheads.training.precision import synchronise

__all__ = ["DecodingSpeed", "ModeSpeed", "bench_decode"]

SINGLE_SHARE = 10  # with one sentence a call, every tenth sentence is translated, because it takes so much longer


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


@dataclass(frozen=True)
class DecodingSpeed:
    """Decoding speed of a run.

    Attributes:
        median, min, max: sentences/s of the fastest mode with the run's own beam size.
        modes: each combination of beam size and batch size.
        precision: precision, as in `Translator.load`.
        peak_memory_mib: peak resident size of the process in MiB, on a GPU the peak of allocated memory.
    """

    median: float
    min: float
    max: float
    modes: list[ModeSpeed]
    beam_size: int
    precision: str
    peak_memory_mib: float
    parameters: int
    device: str
    threads: int
    unit: str = "sentences/s"
    versions: dict[str, str] = field(default_factory=versions)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `bench decode --json`."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return lines of text."""
        return [
            *(mode.line() for mode in self.modes),
            f"{self.parameters:,} parameters, {self.precision}, {self.device}, {self.threads} threads, "
            f"{self.peak_memory_mib:,.0f} MiB at most",
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
        beams: beam sizes (default: 1 and the run's own).
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
    split: Split = "valid" if translator.config.data.test is None else "test"
    sources = texts(translator.config, split, None, None)[0][:sentences]
    own = translator.config.search.beam_size
    speeds = {(beam, batch): ModeTimer(beam, batch) for beam in beams or sorted({1, own}) for batch in batches}
    for number in range(rounds + 1):
        for (beam, batch), timer in speeds.items():
            speed = timer.time(translator, sources[::SINGLE_SHARE] if batch == 1 else sources)
            if number:  # the first round warms up
                timer.speeds.append(speed)
                mode = f"beam {beam}, batch {batch or 'all'}"
                listener.message(f"round {number} of {rounds}, {mode}: {speed:,.1f} sentences/s")
    modes = [timer.result() for timer in speeds.values()]
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


class ModeTimer:
    """Times translations with one beam size and batch size.

    Attributes:
        speeds: sentences/s of each round.
    """

    def __init__(self, beam: int, batch: int) -> None:
        self.beam = beam
        self.batch = batch
        self.speeds: list[float] = []
        self.sentences = self.tokens = 0

    def time(self, translator: Translator, sources: Sequence[str]) -> float:
        """Translate all sentences; return the speed in sentences/s."""
        device, size, tokens = translator.model.output.weight.device, self.batch or len(sources), 0
        synchronise(device)
        start = time.perf_counter()
        for first in range(0, len(sources), size):
            for result in translator.translate(sources[first : first + size], beam_size=self.beam):
                tokens += sum(len(hypothesis.tokens) for hypothesis in result.hypotheses[:1])
        synchronise(device)
        seconds = time.perf_counter() - start
        self.sentences, self.tokens = len(sources), tokens
        return len(sources) / seconds

    def result(self) -> ModeSpeed:
        """Summarise the rounds."""
        median = statistics.median(self.speeds)
        return ModeSpeed(
            beam_size=self.beam,
            batch=self.batch,
            median=median,
            min=min(self.speeds),
            max=max(self.speeds),
            tokens_per_second=median * self.tokens / self.sentences,
            sentences=self.sentences,
        )
