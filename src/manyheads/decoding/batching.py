"""Batches of rows to search, and continuous batching: what the engines in C and in torch have in common.

Continuous batching (Yu et al. 2022): beam searches that start at different times share their decoding steps. A new
sentence joins the running batch between two steps, without waiting for the other sentences to finish. A step reads
all weights once, for all sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from manyheads.data.sampler import fixed_batches
from manyheads.decoding.native.threads import map_in_threads
from manyheads.errors import UsageError
from manyheads.search.beam_state import BeamObserver
from manyheads.search.cancellation import cancelled_among
from manyheads.search.interface import Cancelled, Hypothesis, OnFinished, never_cancelled
from manyheads.search.options import SearchOptions
from manyheads.text.tokenizer import BOS, PAD

SUPPRESSED_IDS = (PAD, BOS)  # ids that are never generated
MAX_WORKERS = 8  # threads; more would wait for the interpreter lock


@dataclass(frozen=True)
class Job:
    """One batch of rows to search.

    Attributes:
        rows: sources as ids without begin and end marks.
        options: the options of the search.
        cancelled: returns the indices of the cancelled rows.
        observer: receives every step of a plain beam search.
    """

    rows: Sequence[Sequence[int]]
    options: SearchOptions
    cancelled: Cancelled = never_cancelled
    observer: BeamObserver | None = None


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

    def add(self, rows: Sequence[Sequence[int]], cancelled: Cancelled, on_finished: OnFinished) -> None:
        """Add sentences; their search begins at the next step.

        Args:
            rows: see `Engine.search`; all rows are encoded immediately.
            cancelled: see `Engine.search`.
            on_finished: called with the index of each row and its outputs as soon as its search has stopped.
        """
        ...

    def step(self) -> None:
        """Append a token to all open hypotheses.

        Raises:
            OverflowedError: the model gave log-probabilities that are not numbers.
        """
        ...


def search_in_batches(
    rows: Sequence[Sequence[int]],
    options: SearchOptions,
    cancelled: Cancelled,
    *,
    workers: int,
    search: Callable[[Job], list[list[Hypothesis]]],
    review: Callable[[Job, list[list[Hypothesis]]], list[list[Hypothesis]]] = lambda job, outputs: outputs,
) -> list[list[Hypothesis]]:
    """Search all rows in batches; return the n_best outputs of each row.

    Args:
        rows: see `Engine.search`, as for the next two arguments.
        options: the options of the search.
        cancelled: returns the indices of the cancelled rows.
        workers: number of batches to search at the same time.
        search: searches a batch, in a worker thread.
        review: changes the outputs of a batch, in the calling thread after all searches.
    """
    batches = list(_make_batches(rows, options, workers))
    jobs = [
        Job([rows[index] for index in indices], options.select_rows(indices), cancelled_among(cancelled, indices))
        for indices in batches
    ]
    outputs: list[list[Hypothesis]] = [[] for _ in rows]
    for indices, job, candidates in zip(batches, jobs, map_in_threads(search, jobs, workers), strict=True):
        for index, hypotheses in zip(indices, review(job, candidates), strict=True):
            outputs[index] = hypotheses[: options.n_best]
    return outputs


def _make_batches(rows: Sequence[Sequence[int]], options: SearchOptions, workers: int) -> Iterator[list[int]]:
    """Yield the row indices of each batch: rows of similar length, all with or all without required words.

    The batches that are searched at the same time share `batch_tokens`.
    """
    batch_tokens = options.batch_tokens // workers
    width = options.n_best if options.sampling else options.beam_size
    lengths = np.array([len(row) + 1 for row in rows], dtype=np.int64)
    required = options.required or [()] * len(rows)
    num_required = np.array([sum(map(len, sequences)) for sequences in required], dtype=np.int64)
    for group in (num_required == 0, num_required > 0):
        indices = group.nonzero()[0]
        beams = int(num_required[indices].max(initial=0)) + 1
        for batch in fixed_batches(lengths[indices], max(1, batch_tokens // (width * beams))):
            yield indices[batch].tolist()


def check_options(options: SearchOptions, num_layers: int, longest: int) -> None:
    """Raise `UsageError` for options that a model does not support.

    Args:
        options: the options of the search.
        num_layers: number of decoder layers.
        longest: maximum number of tokens of an output.
    """
    layer = options.attention_layer
    if not -num_layers <= layer < num_layers:
        raise UsageError(
            f"attention layer {layer} does not exist: the decoder has {num_layers}, numbered 0 to {num_layers - 1} "
            f"from below or -1 to -{num_layers} from above."
        )
    for name, sequences in (("prefix", options.prefixes), *(("required", row) for row in options.required)):
        if too_long := next((tokens for tokens in sequences if len(tokens) > longest), None):
            raise UsageError(
                f"a {name} sequence has {len(too_long)} tokens, but the longest output of this model is {longest}."
            )


def finish(search: ContinuousBatching, job: Job) -> list[list[Hypothesis]]:
    """Search one batch by itself until all of its rows are finished."""
    outputs: dict[int, list[Hypothesis]] = {}
    search.add(job.rows, job.cancelled, outputs.__setitem__)
    while search.batches:
        search.step()
    return [outputs[index] for index in range(len(job.rows))]
