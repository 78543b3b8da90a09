"""Batches of rows to search and checks of their options, for all engines; continuous batching.

Continuous batching (Yu et al. 2022): beam searches that start at different times share their decoding steps. A new
sentence joins the running batch between two steps, without waiting for the other sentences to finish. A step reads
all weights once, for all sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from manyheads.data.batches import fixed_batches
from manyheads.errors import UsageError
from manyheads.inference.threads import map_in_threads
from manyheads.search.interface import Cancelled, Engine, Hypothesis, OnFinished, SpecialIds, cancelled_among
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions
from manyheads.text.tokenizer import BOS, EOS, PAD

SPECIAL_IDS = SpecialIds(BOS, EOS, suppressed=(PAD, BOS))  # of every target vocabulary
MAX_WORKERS = 8  # threads; more would wait for the interpreter lock
_LEAST_HYPOTHESES = 32  # in a batch of a worker; fewer are faster in one batch that uses several threads


# Searches rows, each with its constraints; the last argument returns the indices of the cancelled rows.
SearchBatch = Callable[
    [Sequence[Sequence[int]], SearchOptions, Sequence[Constraints], Cancelled], list[list[Hypothesis]]
]


class ContinuousBatching(Protocol):
    """Running searches of one model with the same options; not thread-safe."""

    @property
    def batches(self) -> Sequence[object]:
        """The batches of sentences that were added together, while any of their sentences is still open."""
        ...

    @property
    def full(self) -> bool:
        """Whether no more sentences should be added for now."""
        ...

    def add(
        self,
        rows: Sequence[Sequence[int]],
        cancelled: Cancelled,
        on_finished: OnFinished,
        constraints: Sequence[Constraints] = (),
    ) -> None:
        """Add sentences, which are encoded immediately; their search begins at the next step.

        The arguments are those of `Engine.search`. `on_finished` is called with the index of each row and its
        outputs as soon as its search has stopped.
        """
        ...

    def step(self) -> None:
        """Append a token to all open hypotheses.

        Raises:
            OverflowedError: the model gave log-probabilities that are not numbers.
        """
        ...


@runtime_checkable
class ContinuousEngine(Engine, Protocol):
    """An engine with continuous batching."""

    def can_batch_continuously(self, options: SearchOptions, constraints: Sequence[Constraints] = ()) -> bool:
        """Return whether continuous batching supports a search."""
        ...

    def begin(self, options: SearchOptions) -> ContinuousBatching:
        """Start a continuous batch, with options for which `can_batch_continuously` is true."""
        ...


def search_in_batches(
    rows: Sequence[Sequence[int]],
    options: SearchOptions,
    constraints: Sequence[Constraints],
    cancelled: Cancelled,
    *,
    workers: int,
    search: SearchBatch,
) -> list[list[Hypothesis]]:
    """Search all rows in batches, as `Engine.search`; return the n_best outputs of each row.

    So many `workers` search a batch each at the same time; `search` gets one constraint for each row.
    """
    constraints = constraints or [UNCONSTRAINED] * len(rows)
    batches = list(_make_batches(rows, options, constraints, workers))

    def search_batch(indices: list[int]) -> list[list[Hypothesis]]:
        return search(
            [rows[index] for index in indices],
            options,
            [constraints[index] for index in indices],
            cancelled_among(cancelled, indices),
        )

    outputs: list[list[Hypothesis]] = [[] for _ in rows]
    for indices, found in zip(batches, map_in_threads(search_batch, batches, workers), strict=True):
        for index, hypotheses in zip(indices, found, strict=True):
            outputs[index] = hypotheses[: options.n_best]
    return outputs


def _make_batches(
    rows: Sequence[Sequence[int]], options: SearchOptions, constraints: Sequence[Constraints], workers: int
) -> Iterator[list[int]]:
    """Yield the row indices of each batch: rows of similar length, all with or all without required words.

    The batches that are searched at the same time share `batch_tokens`. Each gets rows of the same lengths, so that
    all take about the same time.
    """
    width = options.n_best if options.sampling else options.beam_size
    lengths = np.array([len(row) + 1 for row in rows], dtype=np.int64)
    num_required = np.array([sum(map(len, constraint.required)) for constraint in constraints], dtype=np.int64)
    for group in (num_required == 0, num_required > 0):
        indices = group.nonzero()[0]
        beams = int(num_required[indices].max(initial=0)) + 1
        batches = fixed_batches(lengths[indices], max(1, options.batch_tokens // (width * beams)))
        parts = workers if len(batches) > 1 else len(indices) * width * beams // _LEAST_HYPOTHESES
        parts = min(workers, max(1, parts))
        for batch in batches:
            for first in range(min(parts, len(batch))):
                yield indices[batch[first::parts]].tolist()


def check_options(
    options: SearchOptions, constraints: Sequence[Constraints], num_layers: int, longest: int
) -> None:
    """Raise `UsageError` for options and constraints that a model of so many decoder layers does not support.

    Outputs have at most `longest` tokens.
    """
    layer = options.attention_layer
    if not -num_layers <= layer < num_layers:
        raise UsageError(
            f"attention layer {layer} does not exist: the decoder has {num_layers}, numbered 0 to {num_layers - 1} "
            f"from below or -1 to -{num_layers} from above."
        )
    if not options.sampling and options.n_best > options.beam_size:
        raise UsageError(f"n_best = {options.n_best} must not be above beam_size = {options.beam_size}.")
    if options.sampling and any(constraint.required for constraint in constraints):
        raise UsageError("required sequences are searched for by a beam, not by sampling.")
    for constraint in constraints:
        named = [("prefix", constraint.prefix), *(("required", tokens) for tokens in constraint.required)]
        if too_long := next(((name, len(tokens)) for name, tokens in named if len(tokens) > longest), None):
            name, length = too_long
            raise UsageError(
                f"a {name} sequence has {length} tokens, but the longest output of this model is {longest}."
            )


def greedy_options(options: SearchOptions, constraints: Constraints) -> SearchOptions:
    """Return the options of a stream; raise `UsageError` if its output would not be greedy."""
    if options.sampling or constraints.required:
        raise UsageError("a stream is a greedy output: no sampling or required words.")
    return replace(options, beam_size=1, n_best=1)


def finish(
    search: ContinuousBatching,
    rows: Sequence[Sequence[int]],
    cancelled: Cancelled,
    constraints: Sequence[Constraints] = (),
) -> list[list[Hypothesis]]:
    """Search one batch by itself until all of its rows are finished."""
    outputs: dict[int, list[Hypothesis]] = {}
    search.add(rows, cancelled, outputs.__setitem__, constraints)
    while search.batches:
        search.step()
    return [outputs[index] for index in range(len(rows))]
