"""Static files for a browser: those of two folders beside this module, read once when the server starts.

`page/` is served at /, its other files below /page/; `explorer/` at /docs, its other files below /docs/. Not by
starlette's `StaticFiles`, which sends scripts with their comments, and is one route for log and metrics.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads.runs.page import PAGE, script_of

__all__ = ["routes"]

HERE = Path(__file__).parent
FOLDERS = (("page", "/", "/page/"), ("explorer", "/docs", "/docs/"))
INDEX = "index.html"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}


def routes() -> list[Route]:
    """Return one route per file."""
    routes: list[Route] = []
    for folder, index, others in FOLDERS:
        for path in sorted((HERE / folder).rglob("*")):
            if path.is_file() and path.suffix in MEDIA_TYPES:
                name = path.relative_to(HERE / folder).as_posix()
                address = index if name == INDEX else others + name
                content = content_of(path)
                routes.append(Route(address, file_endpoint(content, MEDIA_TYPES[path.suffix]), methods=["GET"]))
    return routes


def content_of(path: Path) -> bytes:
    """Return a file as it is sent: scripts of the page without indentation and comments."""
    content = path.read_bytes()
    is_page_script = path.suffix == ".js" and path.parent == PAGE
    return script_of(content.decode()).encode() if is_page_script else content


def file_endpoint(content: bytes, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that sends a file, or 304 if the browser has it already."""
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}

    async def endpoint(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=media_type)

    return endpoint
