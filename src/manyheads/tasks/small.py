"""Small searches whose steps are compiled by torch for a GPU (`model/static.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import torch

from manyheads.errors import UsageError
from manyheads.model.packed import PackedModel
from manyheads.model.products import Precision
from manyheads.model.static import StaticModel
from manyheads.model.static_tensors import PLACES, SENTENCES, Size
from manyheads.native.build import library
from manyheads.search.options import SearchOptions
from manyheads.training.compilation import why_nothing_compiles

__all__ = ["SmallSearches", "check_small"]

MOST_SENTENCES = SENTENCES[-1]  # more keep a GPU busy without, and come in more sizes
MOST_TOKENS = 16_384  # of all rows together: a bound on the memory that is kept for their keys and values
MOST_WIDTHS = 8  # rows a sentence; each needs code of its own


def check_small(device: torch.device, precision: Precision) -> None:
    """Refuse what cannot be compiled, before anything is translated.

    Raises:
        UsageError: see the message.
    """
    if precision == "int8":
        raise UsageError('compile = True is for precision "fp32" or "bf16", not for "int8".')
    if device.type == "cpu" and precision == "bf16":
        raise UsageError('compile = True is for precision "fp32" on a CPU, not for "bf16".')
    if device.type == "cpu" and library() is not None:
        raise UsageError(
            "compile = True is for a GPU: on this CPU all steps are computed by compiled code of our own, which is "
            "faster. Leave it out."
        )
    if reason := why_nothing_compiles(device):
        raise UsageError(f"compile = True, but nothing can be compiled on {device}: {reason} Or leave it out.")


class SmallSearches:
    """The models of an engine for small searches, one at a time.

    Attributes:
        models: made anew whenever the weights change.
        widths: rows a sentence for which there may be code.
    """

    def __init__(self) -> None:
        """Without models."""
        self.models: list[StaticModel] = []
        self.widths: set[int] = set()
        self.turn = Lock()

    def renew(self, models: Sequence[PackedModel]) -> None:
        """Go on with these."""
        self.models = [StaticModel(model) for model in models]

    @contextmanager
    def lent(
        self, rows: Sequence[Sequence[int]], options: SearchOptions, limits: Sequence[int]
    ) -> Iterator[Sequence[StaticModel]]:
        """The models, for a search that suits them, while no other one has them; else none.

        Args:
            rows: as `Engine.search`.
            options: likewise.
            limits: the longest output of each.
        """
        if not self.suits(rows, options, limits) or not self.turn.acquire(blocking=False):
            yield ()
            return
        try:
            self.widths.add(width_of(options))
            yield self.models
        finally:
            self.turn.release()

    def suits(self, rows: Sequence[Sequence[int]], options: SearchOptions, limits: Sequence[int]) -> bool:
        """Whether a search is small, and of a kind that has one beam of one width."""
        width = width_of(options)
        places = 1 + max([*map(len, rows), *limits], default=0)  # with an end mark
        if options.diverse_groups > 1 or any(options.required):
            return False
        if not 0 < len(rows) <= MOST_SENTENCES or places > PLACES[-1]:
            return False
        known = width in self.widths or len(self.widths) < MOST_WIDTHS
        return known and Size.holding(len(rows), width, places).tokens <= MOST_TOKENS


def width_of(options: SearchOptions) -> int:
    """The rows that a search has of a sentence."""
    return options.n_best if options.sampling else options.beam_size
