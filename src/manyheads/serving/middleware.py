"""ASGI middleware around all routes: host and origin checks, security headers, request log and metrics.

Not starlette's `TrustedHostMiddleware` and `CORSMiddleware`: they answer in plain text, where LibreTranslate's
clients read `{"error": ...}`, pass requests of foreign origins on to the models, and would need a third class
around them to log their answers and to add the security headers.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manyheads.serving.access import header
from manyheads.serving.responses import ApiError, error_response
from manyheads.serving.service import Service

__all__ = ["CLIENT_CLOSED_REQUEST", "RequestMiddleware"]

CLIENT_CLOSED_REQUEST = 499  # status in the log only, as nginx has it: the client has disconnected
LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]"}
PATHS_BEFORE_READY = {"/health", "/metrics"}  # answered before the models are loaded
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", POLICY.encode()),
]
NO_STORE = (b"cache-control", b"no-store")


class RequestMiddleware:
    """Checks each request before the application, and completes, counts and logs each response.

    Args:
        app: the application.
        service: the server's state and settings.
        route_of: returns the route of a path, for the log and the metrics: a path may hold text.
        computing_paths: paths of routes that compute; refused at once when the server is busy.
    """

    def __init__(
        self, app: ASGIApp, service: Service, route_of: Callable[[str], str], computing_paths: frozenset[str]
    ) -> None:
        self.app = app
        self.service = service
        self.route_of = route_of
        self.computing_paths = computing_paths
        self.origins = frozenset(service.settings.cors_origins)
        names = {name.lower() for name in service.settings.host_names}
        own = {service.settings.host.lower(), f"[{service.settings.host.lower()}]"}
        self.names = names | own | LOOPBACK_NAMES if service.settings.is_loopback or names else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; an exception that no handler caught becomes 500."""
        assert scope["type"] == "http"
        started, status = perf_counter(), 0
        origin = header(scope, b"origin")

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = self.headers(message["headers"], origin)
            await send(message)

        try:
            await self.respond(scope, receive, send_with_headers, origin)
        except Exception as error:
            self.service.log(describe_fault(error))
            if not status:
                internal = ApiError(500, "Internal server error")
                await error_response(internal, scope["path"])(scope, receive, send_with_headers)
        self.record(scope, status, perf_counter() - started)

    async def respond(self, scope: Scope, receive: Receive, send: Send, origin: str | None) -> None:
        """Answer a preflight request or an error, or call the application."""
        try:
            if origin is not None and self.is_preflight(scope):
                await preflight(scope, send, allowed=self.allows(origin))
                return
            self.check(scope, origin)
            await self.app(scope, receive, send)
        except ApiError as error:
            await error_response(error, scope["path"])(scope, receive, send)

    def check(self, scope: Scope, origin: str | None) -> None:
        """Check host name, origin, readiness and load before the body is read.

        Raises:
            ApiError: the host name or origin is not allowed (403), or the server is starting or busy (503).
        """
        name = host_name(header(scope, b"host") or "")
        if self.names is not None and name not in self.names:
            raise ApiError(403, "This server is not called by that name")
        foreign = origin is not None and not self.allows(origin) and not is_own(origin, header(scope, b"host"))
        if foreign and scope["method"] not in ("GET", "HEAD"):
            raise ApiError(403, "Pages of that origin may not use this server")
        path = scope["path"]
        if not self.service.ready and path not in PATHS_BEFORE_READY:
            raise ApiError(503, "The server is starting", retry_after=2)
        overload = self.service.requests.overload_error() if path in self.computing_paths else None
        if overload is not None:
            raise overload

    def allows(self, origin: str) -> bool:
        """Return whether pages of an origin may read responses."""
        return "*" in self.origins or origin in self.origins

    def is_preflight(self, scope: Scope) -> bool:
        """Return whether a request is a CORS preflight request."""
        return scope["method"] == "OPTIONS" and header(scope, b"access-control-request-method") is not None

    def headers(self, own: list[tuple[bytes, bytes]], origin: str | None) -> list[tuple[bytes, bytes]]:
        """Return a response's own headers followed by the security and CORS headers."""
        names = {name for name, _ in own}
        headers = [*own, *(pair for pair in (*HEADERS, NO_STORE) if pair[0] not in names)]
        if self.origins:
            headers.append((b"vary", b"Origin"))
        if origin is not None and self.allows(origin):
            value = "*" if "*" in self.origins else origin
            headers.append((b"access-control-allow-origin", value.encode("latin-1")))
            headers.append((b"access-control-expose-headers", b"Retry-After"))
        return headers

    def record(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a response and log it: neither its query string nor any text."""
        route = self.route_of(scope["path"])
        method = scope["method"] if scope["method"] in ("GET", "POST", "HEAD", "OPTIONS") else "other"
        self.service.metrics.count_request(method, route, status, seconds)
        self.service.log(f"{method} {route} {status} {1000 * seconds:.1f} ms")


async def preflight(scope: Scope, send: Send, *, allowed: bool) -> None:
    """Answer a CORS preflight request: which methods and headers pages of the origin may send."""
    granted = [
        (b"access-control-allow-methods", b"GET, POST"),
        (b"access-control-allow-headers", b"Authorization, Content-Type"),
        (b"access-control-max-age", b"600"),
    ]
    status = 204 if allowed else 403
    await send({"type": "http.response.start", "status": status, "headers": granted if allowed else []})
    await send({"type": "http.response.body", "body": b""})


def is_own(origin: str, host: str | None) -> bool:
    """Return whether an origin is the server itself, under the name in the Host header."""
    return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def host_name(host: str) -> str:
    """Return the name in a Host header, in lower case and without the port."""
    name = host.lower()
    if name.startswith("["):
        return name[: name.find("]") + 1]
    return name.partition(":")[0]


def describe_fault(error: Exception) -> str:
    """Return a log line with an exception's type and frames; its message may hold text of a request."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"fault {type(error).__name__} at {places}"
