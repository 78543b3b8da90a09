"""Continuous batching in C: beam searches whose bookkeeping needs no interpreter between two steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manyheads.decoding.batching import SUPPRESSED_IDS
from manyheads.decoding.native.beams import NativeBeam, NativeBeams, ReadSources
from manyheads.decoding.native.model import NativeModel
from manyheads.search.beam_state import divisors
from manyheads.search.interface import (
    Cancelled,
    Hypothesis,
    OnFinished,
    best_outputs,
    make_hypothesis,
    never_cancelled,
)
from manyheads.search.options import SearchOptions
from manyheads.text.tokenizer import BOS, EOS


def can_search(model: NativeModel, options: SearchOptions) -> bool:
    """Return whether the C code can search with these options.

    It can search greedily and with a plain beam, if the vocabulary has more tokens than a row has candidates.
    """
    return not options.in_use() and options.beam_size + 1 + len(SUPPRESSED_IDS) < model.vocabulary


@dataclass(eq=False)
class _NativeBatch:
    """Sentences that were added together, and the running search of each by its index."""

    cancelled: Cancelled
    on_finished: OnFinished
    running: dict[int, NativeBeam]


class NativeContinuousBatching:
    """Continuous batching in C, see `ContinuousBatching`; the outputs equal those of `TorchContinuousBatching`."""

    full = False  # a batch costs next to nothing

    def __init__(self, model: NativeModel, options: SearchOptions, read: ReadSources) -> None:
        """Start without sentences.

        Args:
            model: computes the steps.
            options: options for which `can_search` is true.
            read: encodes the sources.
        """
        self.options = options
        self.max_length = model.config.max_positions - 1
        self.beams = NativeBeams(
            model,
            read,
            divisors(self.max_length + 1, options.length_penalty),
            beam_size=options.beam_size,
            n_best=options.n_best,
            bos=BOS,
            eos=EOS,
            suppressed=SUPPRESSED_IDS,
        )
        self.batches: list[_NativeBatch] = []

    def add(self, rows: Sequence[Sequence[int]], cancelled: Cancelled, on_finished: OnFinished) -> None:
        """See `ContinuousBatching.add`."""
        beams = self.beams.add([[*row, EOS] for row in rows], self.options.longest(rows, self.max_length))
        self.batches.append(_NativeBatch(cancelled, on_finished, dict(enumerate(beams))))

    def step(self) -> None:
        """See `ContinuousBatching.step`."""
        for batch in self.batches:
            if batch.cancelled is not never_cancelled:
                for index in batch.cancelled():
                    if index in batch.running:
                        batch.running[index].cancel()
        if not self.beams.step():
            return
        for batch in self.batches:
            for index in [index for index, beam in batch.running.items() if beam.ended]:
                batch.on_finished(index, self.hypotheses(batch.running.pop(index)))
        self.batches = [batch for batch in self.batches if batch.running]

    def hypotheses(self, beam: NativeBeam) -> list[Hypothesis]:
        """Return the n_best outputs of a search, best first; of equal scores the earlier first."""
        outputs = [
            make_hypothesis(tokens, values, ended=ended, length_penalty=self.options.length_penalty)
            for tokens, values, ended in beam.collect_outputs(EOS)
        ]
        return best_outputs(outputs, self.options.n_best)
