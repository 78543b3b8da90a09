"""What holds for every request: who may call by which name, what is said beside each answer, what is logged."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from manyheads.serving.access import header
from manyheads.serving.answers import Refusal, error_answer
from manyheads.serving.service import Service

__all__ = ["CLIENT_GONE", "Guard"]

CLIENT_GONE = 499  # in the log only: nobody is there to be answered
OWN_NAMES = {"localhost", "127.0.0.1", "[::1]"}
# Answered before the models are ready.
ALWAYS = {"/health", "/metrics"}
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


class Guard:
    """Stands before an application.

    Args:
        app: what answers.
        service: whose settings hold.
        route_of: the route that a path belongs to, for the log and the counts: a path may hold text.
        computing: paths of routes that compute: refused at once when the server is busy.
    """

    def __init__(
        self, app: ASGIApp, service: Service, route_of: Callable[[str], str], computing: frozenset[str]
    ) -> None:
        self.app = app
        self.service = service
        self.route_of = route_of
        self.computing = computing
        self.origins = frozenset(service.settings.cors_origins)
        names = {name.lower() for name in service.settings.host_names}
        own = {service.settings.host.lower(), f"[{service.settings.host.lower()}]"}
        self.names = names | own | OWN_NAMES if service.settings.is_loopback or names else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        assert scope["type"] == "http"
        begun, status = perf_counter(), 0
        origin = header(scope, b"origin")

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = self.headers(message["headers"], origin)
            await send(message)

        try:
            await self.answer(scope, receive, send_with_headers, origin)
        except Exception as error:
            self.service.log(fault(error))
            if not status:
                refusal = Refusal(500, "Internal server error")
                await error_answer(refusal, scope["path"])(scope, receive, send_with_headers)
        self.note(scope, status, perf_counter() - begun)

    async def answer(self, scope: Scope, receive: Receive, send: Send, origin: str | None) -> None:
        """Refuse, or let the application answer."""
        try:
            if origin is not None and self.is_preflight(scope):
                await preflight(scope, send, allowed=self.allows(origin))
                return
            self.check(scope, origin)
            await self.app(scope, receive, send)
        except Refusal as refusal:
            await error_answer(refusal, scope["path"])(scope, receive, send)

    def check(self, scope: Scope, origin: str | None) -> None:
        """Raise `Refusal` for what is not even looked at."""
        name = host_name(header(scope, b"host") or "")
        if self.names is not None and name not in self.names:
            raise Refusal(403, "This server is not called by that name")
        foreign = origin is not None and not self.allows(origin) and not is_own(origin, header(scope, b"host"))
        if foreign and scope["method"] not in ("GET", "HEAD"):
            raise Refusal(403, "Pages of that origin may not use this server")
        path = scope["path"]
        if not self.service.ready and path not in ALWAYS:
            raise Refusal(503, "The server is starting", retry_after=2)
        busy = self.service.work.refusal() if path in self.computing else None
        if busy is not None:
            raise busy

    def allows(self, origin: str) -> bool:
        """Whether pages of an origin may read answers."""
        return "*" in self.origins or origin in self.origins

    def is_preflight(self, scope: Scope) -> bool:
        """Whether a browser asks what it may ask."""
        return scope["method"] == "OPTIONS" and header(scope, b"access-control-request-method") is not None

    def headers(self, own: list[tuple[bytes, bytes]], origin: str | None) -> list[tuple[bytes, bytes]]:
        """The headers of an answer with those that all answers have."""
        named = {name for name, _ in own}
        found = [*own, *(pair for pair in (*HEADERS, NO_STORE) if pair[0] not in named)]
        if self.origins:
            found.append((b"vary", b"Origin"))
        if origin is not None and self.allows(origin):
            value = "*" if "*" in self.origins else origin
            found.append((b"access-control-allow-origin", value.encode("latin-1")))
            found.append((b"access-control-expose-headers", b"Retry-After"))
        return found

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Count an answer and log it: neither its query string nor any text."""
        route = self.route_of(scope["path"])
        method = scope["method"] if scope["method"] in ("GET", "POST", "HEAD", "OPTIONS") else "other"
        self.service.metrics.count_request(method, route, status, seconds)
        self.service.log(f"{method} {route} {status} {1000 * seconds:.1f} ms")


async def preflight(scope: Scope, send: Send, *, allowed: bool) -> None:
    """Tell a browser what pages of its origin may send."""
    granted = [
        (b"access-control-allow-methods", b"GET, POST"),
        (b"access-control-allow-headers", b"Authorization, Content-Type"),
        (b"access-control-max-age", b"600"),
    ]
    status = 204 if allowed else 403
    await send({"type": "http.response.start", "status": status, "headers": granted if allowed else []})
    await send({"type": "http.response.body", "body": b""})


def is_own(origin: str, host: str | None) -> bool:
    """Whether a page of an origin came from the server that is called now."""
    return origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


def host_name(host: str) -> str:
    """The name in a Host header, without the port."""
    name = host.lower()
    if name.startswith("["):
        return name[: name.find("]") + 1]
    return name.partition(":")[0]


def fault(error: Exception) -> str:
    """Where a fault of ours happened; its message may hold text of a request, and is left out."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"fault {type(error).__name__} at {places}"
