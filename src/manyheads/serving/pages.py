"""Files for a browser: those of the folders beside this module, read once, and nothing else.

`page/` is served at /, its other files below /page/; `explorer/` at /docs, its other files below /docs/.
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
KINDS = {
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
    """One route a file."""
    found = []
    for folder, index, others in FOLDERS:
        for path in sorted((HERE / folder).rglob("*")):
            if path.is_file() and path.suffix in KINDS:
                name = path.relative_to(HERE / folder).as_posix()
                address = index if name == INDEX else others + name
                found.append(Route(address, served(content_of(path), KINDS[path.suffix]), methods=["GET"]))
    return found


def content_of(path: Path) -> bytes:
    """A file as it is sent; of our own scripts without indentation and comments."""
    content = path.read_bytes()
    ours = path.suffix == ".js" and path.parent == PAGE
    return script_of(content.decode()).encode() if ours else content


def served(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """What answers with a file, or says that the browser has it already."""
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)

    return answer
