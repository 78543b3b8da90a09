"""The state of a running server that its routes share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from starlette.requests import Request

from manyheads.serving.access import Access
from manyheads.serving.batching import Batcher
from manyheads.serving.fields import Fields, read_fields
from manyheads.serving.metrics import Metrics
from manyheads.serving.models import Models
from manyheads.serving.request_pool import RequestPool
from manyheads.serving.settings import ServeSettings

__all__ = ["Service"]


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
        models: the served models; empty until `ready`.
        ready: whether all models have been loaded and used once.
    """

    settings: ServeSettings
    batcher: Batcher
    requests: RequestPool
    access: Access
    log: Callable[[str], None]
    metrics: Metrics = field(init=False)
    models: Models = field(default_factory=Models)
    ready: bool = False

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.requests, self.batcher)

    @classmethod
    def of(cls, request: Request) -> Self:
        """Return the service of the server that received a request."""
        service = request.app.state.service
        assert isinstance(service, cls)
        return service

    @classmethod
    async def read(cls, request: Request) -> tuple[Self, Fields]:
        """Read the fields of a request, and check its key and its rate; return the service and the fields.

        Raises:
            ApiError: the body cannot be read, or the request is not allowed; see `read_fields` and `Access.check`.
        """
        service = cls.of(request)
        fields = await read_fields(request, service.settings.body_limit)
        service.access.check(request, fields)
        return service, fields
