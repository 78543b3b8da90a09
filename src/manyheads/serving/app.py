"""The Starlette application: all routes behind the request middleware."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from manyheads.serving import (
    classification_routes,
    completion_routes,
    inspection_routes,
    service_routes,
    static_files,
    translation_routes,
)
from manyheads.serving.middleware import CLIENT_CLOSED_REQUEST, RequestMiddleware
from manyheads.serving.responses import ApiError, ClientDisconnected, error_response
from manyheads.serving.service import Service

__all__ = ["make_app"]

COMPUTING_PATHS = frozenset(
    ("/translate", "/detect", "/classify", "/v1/completions", *inspection_routes.COMPUTING_PATHS)
)
ROUTE_MODULES = (
    translation_routes,
    classification_routes,
    completion_routes,
    inspection_routes,
    service_routes,
    static_files,
)


def make_app(service: Service) -> ASGIApp:
    """Return the ASGI application of a server."""
    routes: list[Route] = [route for module in ROUTE_MODULES for route in module.routes()]
    app = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: handle_http_error,
            ApiError: handle_http_error,
            ClientDisconnected: handle_disconnect,
            Exception: handle_internal_error,
        },
    )
    app.router.redirect_slashes = False
    app.state.service = service
    paths = {route.path: route.path for route in routes}
    return RequestMiddleware(app, service, lambda path: paths.get(path, "other"), COMPUTING_PATHS)


async def handle_http_error(request: Request, error: Exception) -> Response:
    """Answer an `ApiError`, or Starlette's 404 and 405, in the shape of all errors."""
    if isinstance(error, ApiError):
        return error_response(error, request.url.path)
    assert isinstance(error, HTTPException)
    response = error_response(ApiError(error.status_code, error.detail), request.url.path)
    response.headers.update(error.headers or {})
    return response


async def handle_disconnect(request: Request, error: Exception) -> Response:
    """Return a status that only the log shows: the client has closed its connection."""
    return Response(status_code=CLIENT_CLOSED_REQUEST)


async def handle_internal_error(request: Request, error: Exception) -> Response:
    """Answer an unexpected exception with 500; the middleware logs where it was raised."""
    return error_response(ApiError(500, "Internal server error"), request.url.path)
