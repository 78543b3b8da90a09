"""A running server: what its routes share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request

from manyheads.serving.access import Access
from manyheads.serving.batching import Batcher
from manyheads.serving.metrics import Metrics
from manyheads.serving.models import Models
from manyheads.serving.settings import ServeSettings
from manyheads.serving.work import Work

__all__ = ["Service"]


@dataclass
class Service:
    """All of it.

    Attributes:
        settings: how it is run.
        batcher: computes texts of many requests together.
        work: the requests that compute.
        access: who may ask.
        metrics: what is counted.
        log: writes a line for the operator; never any text of a request.
        models: what is served; empty until `ready`.
        ready: whether all models have been loaded and used once.
    """

    settings: ServeSettings
    batcher: Batcher
    work: Work
    access: Access
    log: Callable[[str], None]
    metrics: Metrics = field(default_factory=Metrics)
    models: Models = field(default_factory=Models)
    ready: bool = False

    @staticmethod
    def of(request: Request) -> Service:
        """The server that a request came to."""
        found = request.app.state.service
        assert isinstance(found, Service)
        return found
