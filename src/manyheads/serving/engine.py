"""The engine that a request's translator has: it puts rows into the common queue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from manyheads.errors import UsageError
from manyheads.search.interface import Abandoned, Engine, Hypothesis, nobody
from manyheads.search.options import Ids, SearchOptions
from manyheads.serving.batching import Batcher
from manyheads.serving.items import Item, Ticket
from manyheads.tasks import joining
from manyheads.tasks.engine import TorchEngine
from manyheads.tasks.translation import Translator

__all__ = ["queued"]

LOOKING = threading.Lock()  # attention is recorded in the model's own modules: one search at a time


@dataclass(frozen=True)
class Row:
    """A source, and what is asked of it alone."""

    ids: Sequence[int]
    prefix: Ids = ()
    forbidden: tuple[Ids, ...] = ()
    required: tuple[Ids, ...] = ()


@dataclass(frozen=True)
class Search:
    """A group of rows: one engine, the same options. Engines are equal when they are the same one."""

    engine: Engine
    options: SearchOptions

    def compute(self, payloads: Sequence[Row], abandoned: Abandoned) -> list[list[Hypothesis]]:
        """See `Group.compute`."""
        options = replace(
            self.options,
            prefixes=entries([row.prefix for row in payloads]),
            forbidden=entries([row.forbidden for row in payloads]),
            required=entries([row.required for row in payloads]),
        )
        rows = [row.ids for row in payloads]
        if options.attention or options.rivals or options.coverage_penalty:
            with LOOKING:
                return self.engine.search(rows, options, abandoned)
        return self.engine.search(rows, options, abandoned)


@dataclass(frozen=True)
class JoinableSearch(Search):
    """Plain rows, which others may join while they are searched for."""

    engine: TorchEngine

    def begin(self) -> Joining:
        """See `JoinableGroup.begin`."""
        return Joining(self.engine.begin(self.options))


class Joining:
    """See `Running`."""

    def __init__(self, search: joining.Joining) -> None:
        self.search = search

    @property
    def parts(self) -> int:
        """See `Running`."""
        return len(self.search.parts)

    @property
    def full(self) -> bool:
        """See `Running`."""
        return self.search.full

    def add(self, payloads: Sequence[Row], abandoned: Abandoned, tell: Callable[[int, Any], None]) -> None:
        """See `Running.add`."""
        self.search.add([row.ids for row in payloads], abandoned, tell)

    def step(self) -> None:
        """See `Running.step`."""
        self.search.step()


def entries(values: list[Any]) -> tuple[Any, ...]:
    """One entry a row, or none where nothing is asked of any row."""
    return tuple(values) if any(values) else ()


class QueuedEngine:
    """See `Engine`; what it is asked is computed together with what others ask."""

    def __init__(self, engine: Engine, batcher: Batcher, ticket: Ticket) -> None:
        self.engine = engine
        self.batcher = batcher
        self.ticket = ticket

    def search(
        self, rows: Sequence[Sequence[int]], options: SearchOptions, abandoned: Abandoned = nobody
    ) -> list[list[Hypothesis]]:
        """See `Engine.search`; the ticket says when all rows are abandoned."""
        common = replace(options, prefixes=(), forbidden=(), required=(), batch_tokens=self.batcher.max_tokens)
        width = options.n_best if options.sampling else options.beam_size
        group = Search(self.engine, common)
        if isinstance(self.engine, TorchEngine) and self.engine.can_join(options):
            group = JoinableSearch(self.engine, common)
        items = []
        for number, ids in enumerate(rows):
            row = Row(
                ids,
                options.prefixes[number] if options.prefixes else (),
                options.forbidden[number] if options.forbidden else (),
                options.required[number] if options.required else (),
            )
            items.append(Item(group, row, (len(ids) + 1) * width, self.ticket))
        found: list[list[Hypothesis]] = self.batcher.results(items)
        return found

    def stream(self, row: Sequence[int], options: SearchOptions) -> Iterator[int]:
        """See `Engine.stream`; streams do not go through the queue."""
        raise UsageError("a translation that is served is not streamed.")


def queued(translator: Translator, batcher: Batcher, ticket: Ticket) -> Translator:
    """The translator for one request."""
    return Translator(translator.config, translator.tokenizers, QueuedEngine(translator.engine, batcher, ticket))
