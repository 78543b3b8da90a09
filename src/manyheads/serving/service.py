"""The state of a running server that its routes share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from starlette.requests import Request

from manyheads.data.suggestions import SuggestionFile
from manyheads.documents.formats import SUFFIXES
from manyheads.search.interface import Cancelled
from manyheads.serving.access import Access
from manyheads.serving.batching import Batcher
from manyheads.serving.fields import Fields, read_fields
from manyheads.serving.metrics import Metrics
from manyheads.serving.models import Models
from manyheads.serving.queue_items import BatchGroup, QueueItem
from manyheads.serving.request_pool import RequestPool
from manyheads.serving.settings import ServeSettings
from manyheads.serving.translated_files import TranslatedFiles

_KEPT_FILES = 16  # translated files of the maximum size that wait for their download at once


@dataclass(frozen=True, eq=False)
class WorkerTask:
    """A function that a worker of the queue calls for one request, as a `BatchGroup` of one item."""

    function: Callable[[Cancelled], Any]

    def compute(self, payloads: Sequence[None], cancelled: Cancelled) -> list[Any]:
        """Call the function; see `BatchGroup.compute`."""
        return [self.function(cancelled) for _ in payloads]


@dataclass
class Service:
    """State shared by the routes.

    Attributes:
        settings: the settings of the command line.
        batcher: computes texts of many requests together.
        requests: the pool of computing requests.
        access: checks API keys and rate limits.
        log: writes a line for the operator; never any text of a request.
        metrics: Prometheus metrics.
        models: the served models; empty until `ready`; SIGHUP replaces them, so a request reads them once.
        suggestions: file for corrections; None stores none.
        ready: whether all models have been loaded and used once.
        files: translated files that wait for their download.
    """

    settings: ServeSettings
    batcher: Batcher
    requests: RequestPool
    access: Access
    log: Callable[[str], None]
    metrics: Metrics = field(init=False)
    files: TranslatedFiles = field(init=False)
    models: Models = field(default_factory=Models)
    suggestions: SuggestionFile | None = None
    ready: bool = False

    def __post_init__(self) -> None:
        self.files = TranslatedFiles(_KEPT_FILES * self.settings.file_limit)
        self.metrics = Metrics(self.requests, self.batcher)

    @property
    def file_suffixes(self) -> list[str]:
        """Return the suffixes of files that are translated; none where this is switched off."""
        return list(SUFFIXES) if self.settings.files else []

    @classmethod
    def of(cls, request: Request) -> Self:
        """Return the service of the server that received a request."""
        service = request.app.service
        assert isinstance(service, cls)
        return service

    @classmethod
    async def read(cls, request: Request) -> tuple[Self, Fields]:
        """Read the fields of a request, and check its key and its rate; return the service and the fields."""
        service = cls.of(request)
        fields = await read_fields(request, service.settings.body_limit)
        service.access.check(request, fields)
        return service, fields

    async def compute(
        self, request: Request, group: BatchGroup, payloads: Sequence[Any], sizes: Sequence[int]
    ) -> list[Any]:
        """Compute payloads of a request, each with its size in tokens, and return their results."""
        return await self.requests.run(
            request.receive,
            lambda handle: self.batcher.compute_all(
                [QueueItem(group, payload, size, handle) for payload, size in zip(payloads, sizes, strict=True)]
            ),
        )
