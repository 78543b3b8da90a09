"""Routes for operators: /health and /metrics."""

from __future__ import annotations

import hmac

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads.serving.access import bearer
from manyheads.serving.responses import ApiError, json_response
from manyheads.serving.service import Service

__all__ = ["routes"]


async def health(request: Request) -> Response:
    """GET /health: 200 once all models have been loaded and used, and until the server ends; else 503."""
    service = Service.of(request)
    if service.requests.draining:
        return json_response({"status": "stopping"}, 503)
    return json_response({"status": "ok"}) if service.ready else json_response({"status": "starting"}, 503)


async def metrics(request: Request) -> Response:
    """GET /metrics: the metrics, for clients that send the token."""
    service = Service.of(request)
    token = service.settings.metrics_token
    if token is None:
        raise ApiError(404, "Not Found")
    sent = bearer(request.scope) or ""
    if not hmac.compare_digest(sent.encode(), token.encode()):
        raise ApiError(401, "The metrics need their token: Authorization: Bearer TOKEN")
    return Response(service.metrics.render(), media_type="text/plain; version=0.0.4")


def routes() -> list[Route]:
    """Return the routes of this module."""
    return [Route("/health", health, methods=["GET"]), Route("/metrics", metrics, methods=["GET"])]
