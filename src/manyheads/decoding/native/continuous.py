"""Continuous batching in C: beam searches whose bookkeeping needs no interpreter between two steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from manyheads.decoding.continuous import SUPPRESSED_IDS, ContinuousBatching, TorchContinuousBatching
from manyheads.decoding.model import InferenceModel
from manyheads.decoding.native.beams import NativeBeam, NativeBeams, can_search
from manyheads.search.beam import OnFinished
from manyheads.search.candidates import divisors, make_hypothesis
from manyheads.search.interface import Cancelled, Hypothesis, never_cancelled
from manyheads.search.options import SearchOptions
from manyheads.text.tokenizer import BOS, EOS

__all__ = ["NativeContinuousBatching", "start_continuous_batching"]


def start_continuous_batching(model: InferenceModel, options: SearchOptions) -> ContinuousBatching:
    """Return a search without sentences, in C if the model can; of the options, it uses those of a plain beam."""
    native = can_search(model, options.beam_size, SUPPRESSED_IDS)
    return NativeContinuousBatching(model, options) if native else TorchContinuousBatching(model, options)


@dataclass(eq=False)
class NativeBatch:
    """Sentences that joined together, and the running search of each by its number."""

    cancelled: Cancelled
    tell: OnFinished
    running: dict[int, NativeBeam]


class NativeContinuousBatching:
    """Continuous batching in C, see `ContinuousBatching`; its outputs are those of `TorchContinuousBatching`."""

    full = False  # a batch costs next to nothing

    def __init__(self, model: InferenceModel, options: SearchOptions) -> None:
        """Start without sentences; of the options, those of a plain beam are used."""
        self.options = options
        self.max_length = model.model.config.max_positions - 1
        self.beams = NativeBeams(
            model,
            divisors(self.max_length + 1, options.length_penalty),
            beam_size=options.beam_size,
            n_best=options.n_best,
            bos=BOS,
            eos=EOS,
            suppressed=SUPPRESSED_IDS,
        )
        self.parts: list[NativeBatch] = []

    @torch.inference_mode()
    def add(self, rows: Sequence[Sequence[int]], cancelled: Cancelled, tell: OnFinished) -> None:
        """See `ContinuousBatching.add`."""
        beams = self.beams.add([[*row, EOS] for row in rows], self.options.longest(rows, self.max_length))
        self.parts.append(NativeBatch(cancelled, tell, dict(enumerate(beams))))

    def step(self) -> None:
        """See `ContinuousBatching.step`."""
        for part in self.parts:
            if part.cancelled is not never_cancelled:
                for number in part.cancelled():
                    if number in part.running:
                        part.running[number].cancel()
        if not self.beams.step():
            return
        for part in self.parts:
            for number in [number for number, beam in part.running.items() if beam.ended]:
                part.tell(number, self.hypotheses(part.running.pop(number)))
        self.parts = [part for part in self.parts if part.running]

    def hypotheses(self, beam: NativeBeam) -> list[Hypothesis]:
        """Return the n_best outputs of a search, best first, the earlier first among equals."""
        outputs = [
            make_hypothesis(tokens, values, ended=ended, length_penalty=self.options.length_penalty)
            for tokens, values, ended in beam.collect_outputs(EOS)
        ]
        return sorted(outputs, key=lambda output: -output.score)[: self.options.n_best]
