"""Routes for those who look after a server: /health and /metrics."""

from __future__ import annotations

import hmac

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads.serving.access import bearer
from manyheads.serving.answers import Refusal, json_answer
from manyheads.serving.service import Service

__all__ = ["routes"]


async def health(request: Request) -> Response:
    """GET /health: 200 once all models have been loaded and used, and until the server ends; else 503."""
    service = Service.of(request)
    if service.work.draining:
        return json_answer({"status": "stopping"}, 503)
    return json_answer({"status": "ok"}) if service.ready else json_answer({"status": "starting"}, 503)


async def metrics(request: Request) -> Response:
    """GET /metrics, for who has the token."""
    service = Service.of(request)
    token = service.settings.metrics_token
    if token is None:
        raise Refusal(404, "Not Found")
    given = bearer(request.scope) or ""
    if not hmac.compare_digest(given.encode(), token.encode()):
        raise Refusal(401, "The metrics need their token: Authorization: Bearer TOKEN")
    text = "".join(service.metrics.lines(service.work, service.batcher))
    return Response(text, media_type="text/plain; version=0.0.4")


def routes() -> list[Route]:
    """Both."""
    return [Route("/health", health, methods=["GET"]), Route("/metrics", metrics, methods=["GET"])]
