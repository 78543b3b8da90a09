"""Continuous batching by compiled code: beam searches whose bookkeeping needs no interpreter between two steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from manyheads.model.beams import CompiledBeams, OpenBeam, can_search
from manyheads.model.packed import PackedModel
from manyheads.search.candidates import divisors, make_hypothesis
from manyheads.search.interface import Abandoned, Hypothesis, nobody
from manyheads.search.options import SearchOptions
from manyheads.tasks.joining import SILENT, JoinedSearch, Joining, Tell
from manyheads.text.tokenizer import BOS, EOS

__all__ = ["CompiledSearch", "joined_search"]


def joined_search(model: PackedModel, options: SearchOptions) -> Joining:
    """A search that sentences can join; nothing yet. Of the options, those of a plain beam are used."""
    compiled = can_search(model, options.beam_size, SILENT)
    return CompiledSearch(model, options) if compiled else JoinedSearch(model, options)


@dataclass(eq=False)
class Part:
    """Sentences that began together, and the searches that go on by their numbers."""

    abandoned: Abandoned
    tell: Tell
    open: dict[int, OpenBeam]


class CompiledSearch:
    """See `Joining`; it finds what `JoinedSearch` finds."""

    full = False  # a part costs next to nothing

    def __init__(self, model: PackedModel, options: SearchOptions) -> None:
        """Nothing yet; of the options, those of a plain beam are used."""
        self.options = options
        self.most = model.model.config.max_positions - 1
        self.beams = CompiledBeams(
            model,
            divisors(self.most + 1, options.length_penalty),
            beam_size=options.beam_size,
            n_best=options.n_best,
            bos=BOS,
            eos=EOS,
            never=SILENT,
        )
        self.parts: list[Part] = []

    @torch.inference_mode()
    def add(self, rows: Sequence[Sequence[int]], abandoned: Abandoned, tell: Tell) -> None:
        """See `Joining.add`."""
        begun = self.beams.begin([[*row, EOS] for row in rows], self.options.longest(rows, self.most))
        self.parts.append(Part(abandoned, tell, dict(enumerate(begun))))

    def step(self) -> None:
        """See `Joining.step`."""
        for part in self.parts:
            if part.abandoned is not nobody:
                for number in part.abandoned():
                    if number in part.open:
                        part.open[number].give_up()
        if not self.beams.step():
            return
        for part in self.parts:
            for number in [number for number, beam in part.open.items() if beam.ended]:
                part.tell(number, self.best(part.open.pop(number)))
        self.parts = [part for part in self.parts if part.open]

    def best(self, beam: OpenBeam) -> list[Hypothesis]:
        """The n_best of a search, best first, the earlier first among equals."""
        found = [
            make_hypothesis(tokens, values, ended=ended, length_penalty=self.options.length_penalty)
            for tokens, values, ended in beam.found(EOS)
        ]
        return sorted(found, key=lambda output: -output.score)[: self.options.n_best]
