"""The routes, put together behind the guard."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from manyheads.serving import classifying, completing, describing, looking, pages, translating, watching
from manyheads.serving.answers import ClientGone, Refusal, error_answer
from manyheads.serving.guard import CLIENT_GONE, Guard
from manyheads.serving.service import Service

__all__ = ["make_app"]

COMPUTING = frozenset(("/translate", "/detect", "/classify", "/v1/completions", *looking.COMPUTING))
ROOMS = (translating, classifying, completing, looking, watching, describing, pages)


def make_app(service: Service) -> ASGIApp:
    """The application of a server."""
    routes: list[Route] = [route for room in ROOMS for route in room.routes()]
    app = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: as_refused, Refusal: as_refused, ClientGone: to_nobody, Exception: as_fault
        },
    )  # fmt: skip
    app.router.redirect_slashes = False
    app.state.service = service
    paths = {route.path: route.path for route in routes}
    return Guard(app, service, lambda path: paths.get(path, "other"), COMPUTING)


async def as_refused(request: Request, error: Exception) -> Response:
    """What is not found or not allowed, in the shape of all refusals."""
    if isinstance(error, Refusal):
        return error_answer(error, request.url.path)
    assert isinstance(error, HTTPException)
    answer = error_answer(Refusal(error.status_code, error.detail), request.url.path)
    answer.headers.update(error.headers or {})
    return answer


async def to_nobody(request: Request, error: Exception) -> Response:
    """The client has gone; only the log sees this."""
    return Response(status_code=CLIENT_GONE)


async def as_fault(request: Request, error: Exception) -> Response:
    """A fault of ours; the guard logs where it happened."""
    return error_answer(Refusal(500, "Internal server error"), request.url.path)
