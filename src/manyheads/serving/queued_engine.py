"""An `Engine` for a served translator that puts its rows into the common queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from manyheads.errors import UsageError
from manyheads.inference.batching import ContinuousBatching, ContinuousEngine
from manyheads.inference.translation.translator import Translator
from manyheads.search.interface import Cancelled, Engine, Hypothesis, never_cancelled
from manyheads.search.options import UNCONSTRAINED, Constraints, Ids, SearchOptions
from manyheads.serving.batching import Batcher
from manyheads.serving.queue_items import BatchGroup, QueueItem, RequestHandle

_Row = tuple[Ids, Constraints]


@dataclass(frozen=True)
class _SearchGroup:
    """Rows that are searched by one engine with the same options; engines are compared by identity."""

    engine: Engine
    options: SearchOptions

    def compute(self, payloads: Sequence[_Row], cancelled: Cancelled) -> list[list[Hypothesis]]:
        """Search for all rows; see `BatchGroup.compute`."""
        rows, constraints = zip(*payloads, strict=True)
        return self.engine.search(rows, self.options, constraints, cancelled)


@dataclass(frozen=True)
class _ContinuousSearchGroup:
    """Token ids of rows without constraints, which support continuous batching."""

    engine: ContinuousEngine
    options: SearchOptions

    def compute(self, payloads: Sequence[Ids], cancelled: Cancelled) -> list[list[Hypothesis]]:
        """Search for all rows; see `BatchGroup.compute`."""
        return self.engine.search(payloads, self.options, cancelled=cancelled)

    def begin(self) -> ContinuousBatching:
        """Return an empty batch; see `ContinuousBatchGroup.begin`."""
        return self.engine.begin(self.options)


class _QueuedEngine:
    """An `Engine` whose rows are batched with rows of other requests."""

    def __init__(self, engine: Engine, batcher: Batcher, handle: RequestHandle) -> None:
        self.engine = engine
        self.batcher = batcher
        self.handle = handle

    def search(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints] = (),
        cancelled: Cancelled = never_cancelled,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each row, as `Engine.search`; `handle`, not `cancelled`, ends the search."""
        options = replace(options, batch_tokens=self.batcher.max_tokens)
        width = options.n_best if options.sampling else options.beam_size
        group: BatchGroup
        payloads: Sequence[Any] = rows
        if isinstance(self.engine, ContinuousEngine) and self.engine.can_batch_continuously(options, constraints):
            group = _ContinuousSearchGroup(self.engine, options)
        else:
            group = _SearchGroup(self.engine, options)
            payloads = list(zip(rows, constraints or [UNCONSTRAINED] * len(rows), strict=True))
        items = [
            QueueItem(group, payload, (len(ids) + 1) * width, self.handle)
            for payload, ids in zip(payloads, rows, strict=True)
        ]
        hypotheses: list[list[Hypothesis]] = self.batcher.compute_all(items)
        return hypotheses

    def stream(
        self, row: Sequence[int], options: SearchOptions, constraints: Constraints = UNCONSTRAINED
    ) -> Iterator[int]:
        """Raise `UsageError`: streams do not go through the queue."""
        raise UsageError("a translation that is served is not streamed.")


def queued_translator(translator: Translator, batcher: Batcher, handle: RequestHandle) -> Translator:
    """Return a copy of a translator that decodes through the queue, for one request."""
    return replace(translator, engine=_QueuedEngine(translator.engine, batcher, handle))
