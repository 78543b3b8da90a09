"""The ASGI application: all routes, behind host and origin checks, security headers, request log and metrics.

Starlette's `TrustedHostMiddleware` and `CORSMiddleware` are not used: they answer in plain text, where
LibreTranslate's clients read `{"error": ...}`, pass requests of foreign origins on to the models, and would need a
third class around them to log their answers and to add the security headers.
"""

from __future__ import annotations

import re
import traceback
from time import perf_counter

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from manyheads.errors import UsageError
from manyheads.serving import (
    classification_routes,
    completion_routes,
    file_routes,
    inspection_routes,
    service_routes,
    translation_routes,
)
from manyheads.serving.access import header
from manyheads.serving.responses import ApiError, ClientDisconnected, error_response
from manyheads.serving.service import Service

_COMPUTING_ROUTES = [  # refused at once when the server is busy
    Route("/translate", translation_routes.translate, methods=["POST"]),
    Route("/detect", translation_routes.detect, methods=["POST"]),
    Route("/suggest", translation_routes.suggest, methods=["POST"]),
    Route("/translate_file", file_routes.translate, methods=["POST"]),
    Route("/classify", classification_routes.classify, methods=["POST"]),
    Route("/v1/completions", completion_routes.complete, methods=["POST"]),
    Route("/api/translate", inspection_routes.translate, methods=["POST"]),
    Route("/api/inspect", inspection_routes.inspect, methods=["POST"]),
    Route("/api/head", inspection_routes.head, methods=["POST"]),
    Route("/api/next", inspection_routes.next_token, methods=["POST"]),
    Route("/api/model", inspection_routes.model),
    Route("/api/curves", inspection_routes.training),
]
_OTHER_ROUTES = [
    Route("/languages", translation_routes.languages),
    Route("/frontend/settings", translation_routes.settings),
    Route("/download_file/{name}", file_routes.download),
    Route("/v1/models", completion_routes.models),
    Route("/api/models", inspection_routes.models),
    Route("/health", service_routes.health),
    Route("/metrics", service_routes.metrics),
    Route("/spec", service_routes.spec),
]
_COMPUTING_PATHS = {route.path for route in _COMPUTING_ROUTES}
_PATHS_BEFORE_READY = {"/health", "/metrics"}  # answered before the models are loaded
_CLIENT_CLOSED_REQUEST = 499  # status in the log only, as nginx has it: the client has disconnected
_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]"}
_HOST = re.compile(
    r"(\[[^][\s,/@?#]+\]|[^][\s,:/@?#]*)(:\d*)?"
)  # of a Host header: an address or a name, and a port
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", _POLICY.encode()),
    (b"cache-control", b"no-store"),
]
_PREFLIGHT_HEADERS = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"Authorization, Content-Type"),
    (b"access-control-max-age", b"600"),
]


class App:
    """Checks each request, calls its route, and completes, counts and logs each response.

    Attributes:
        service: the server's state and settings, for the routes.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        routes = [*_COMPUTING_ROUTES, *_OTHER_ROUTES, *service_routes.static_routes()]
        self.router = Router(routes, redirect_slashes=False)
        self.paths = {route.path for route in routes}
        self.origins = frozenset(service.settings.cors_origins)
        names = {name.lower() for name in service.settings.host_names}
        bound = {service.settings.host.lower(), f"[{service.settings.host.lower()}]"}
        self.names = names | bound | _LOOPBACK_NAMES if service.settings.is_loopback or names else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; any exception becomes an error response, and an unexpected one is logged."""
        assert scope["type"] == "http"
        started, status = perf_counter(), 0
        origin = header(scope, b"origin")
        scope.update(app=self, path=_with_one_slash(scope["path"]))

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = self.headers(message["headers"], origin)
            await send(message)

        try:
            _check_host(scope)
            if origin is not None and _is_preflight(scope):
                await _preflight(send_with_headers, allowed=self.allows(origin))
            else:
                self.check(scope, origin)
                await self.router(scope, receive, send_with_headers)
        except Exception as error:
            response = _response_to(error, scope["path"])
            if response is None or status:
                self.service.log(_describe_fault(error))
                response = error_response(ApiError(500, "Internal server error"), scope["path"])
            if not status:
                await response(scope, receive, send_with_headers)
        self.record(scope, status, perf_counter() - started)

    def check(self, scope: Scope, origin: str | None) -> None:
        """Check host name, origin, readiness and load before the body is read.

        Raises:
            ApiError: the host name or origin is not allowed (403), or the server is starting or busy (503).
        """
        name = _host_name(header(scope, b"host") or "")
        if self.names is not None and name not in self.names:
            raise ApiError(403, "This server is not called by that name")
        foreign = origin is not None and not self.allows(origin) and not _is_own(origin, header(scope, b"host"))
        if foreign and scope["method"] not in ("GET", "HEAD"):
            raise ApiError(403, "Pages of that origin may not use this server")
        path = scope["path"]
        if not self.service.ready and path not in _PATHS_BEFORE_READY:
            raise ApiError(503, "The server is starting", retry_after=2)
        overload = self.service.requests.overload_error() if path in _COMPUTING_PATHS else None
        if overload is not None:
            raise overload

    def allows(self, origin: str) -> bool:
        """Return whether pages of an origin may read responses."""
        return "*" in self.origins or origin in self.origins

    def headers(self, own: list[tuple[bytes, bytes]], origin: str | None) -> list[tuple[bytes, bytes]]:
        """Return a response's own headers followed by the security and CORS headers."""
        names = {name for name, _ in own}
        headers = [*own, *(pair for pair in _HEADERS if pair[0] not in names)]
        if self.origins:
            headers.append((b"vary", b"Origin"))
        if origin is not None and self.allows(origin):
            value = "*" if "*" in self.origins else origin
            headers.append((b"access-control-allow-origin", value.encode("latin-1")))
            headers.append((b"access-control-expose-headers", b"Retry-After"))
        return headers

    def record(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a response and log it under its route, as the path may hold text; never its query string."""
        route = scope["path"] if scope["path"] in self.paths else "other"
        method = scope["method"] if scope["method"] in ("GET", "POST", "HEAD", "OPTIONS") else "other"
        self.service.metrics.count_request(method, route, status, seconds)
        self.service.log(f"{method} {route} {status} {1000 * seconds:.1f} ms")


def _response_to(error: Exception, path: str) -> Response | None:
    """Return the response to an expected exception; None for any other."""
    if isinstance(error, ClientDisconnected):
        return Response(status_code=_CLIENT_CLOSED_REQUEST)
    if isinstance(error, ApiError):
        return error_response(error, path)
    if isinstance(error, UsageError):  # raised by the computation, about the request
        return error_response(ApiError(400, str(error)), path)
    if isinstance(error, HTTPException):  # Starlette's 404 and 405
        response = error_response(ApiError(error.status_code, error.detail), path)
        response.headers.update(error.headers or {})
        return response
    return None


def _with_one_slash(path: str) -> str:
    """Return a path that begins with one slash: clients append /translate to an address that ends with a slash."""
    return "/" + path.lstrip("/")


def _is_preflight(scope: Scope) -> bool:
    """Return whether a request is a CORS preflight request."""
    return scope["method"] == "OPTIONS" and header(scope, b"access-control-request-method") is not None


async def _preflight(send: Send, *, allowed: bool) -> None:
    """Answer a CORS preflight request: which methods and headers pages of the origin may send."""
    status, headers = (204, _PREFLIGHT_HEADERS) if allowed else (403, [])
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _is_own(origin: str, host: str | None) -> bool:
    """Return whether an origin is the server itself, under the name in the Host header."""
    return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def _check_host(scope: Scope) -> None:
    """Raise `ApiError` 400 unless a request has one Host header with one host (RFC 9112); HTTP/1.0 needs none."""
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    if len(hosts) > 1 or not (hosts or scope["http_version"] == "1.0") or not all(map(_HOST.fullmatch, hosts)):
        raise ApiError(400, "A request needs one Host header with one name")


def _host_name(host: str) -> str:
    """Return the name in a Host header, in lower case and without the port."""
    name = host.lower()
    if name.startswith("["):
        return name[: name.find("]") + 1]
    return name.partition(":")[0]


def _describe_fault(error: Exception) -> str:
    """Return a log line with an exception's type and frames; its message may hold text of a request."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"fault {type(error).__name__} at {places}"
