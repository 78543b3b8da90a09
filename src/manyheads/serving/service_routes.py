"""Routes about the server itself: /health, /metrics, /spec (OpenAPI), and files for a browser.

The files of the web page and of the explorer are read once, when the server starts. Starlette's `StaticFiles` is
not used: it is one route for log and metrics.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads import __version__
from manyheads.serving.access import bearer
from manyheads.serving.responses import ApiError, json_response
from manyheads.serving.service import Service
from manyheads.serving.settings import ServeSettings
from manyheads.web.scripts import BUILT, EXPLORER, PAGE

_HERE = Path(__file__).parent
# The files for a browser by their addresses.
_FILES = {
    "/": PAGE / "index.html",
    "/page/page.css": PAGE / "page.css",
    "/page/page.js": BUILT / "page.js",
    "/page/en.json": PAGE / "en.json",
    "/page/ko.json": PAGE / "ko.json",
    "/docs": EXPLORER / "index.html",
    "/docs/explorer.css": EXPLORER / "explorer.css",
    "/docs/explorer.js": EXPLORER / "explorer.js",
}
_MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json"}


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


async def spec(request: Request) -> Response:
    """GET /spec: the OpenAPI document."""
    service = Service.of(request)
    return json_response(_document(service.settings, service.models.languages))


def _document(settings: ServeSettings, codes: list[str]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a server: `openapi.json` with its limits.

    Args:
        settings: the server's limits.
        codes: codes of the served languages.
    """
    content: dict[str, Any] = json.loads((_HERE / "openapi.json").read_text(encoding="utf-8"))
    content["info"]["version"] = __version__
    schemas = content["components"]["schemas"]
    schemas["Text"]["maxLength"] = settings.char_limit
    schemas["Texts"]["oneOf"][1]["maxItems"] = settings.batch_limit
    schemas["CompletionBody"]["properties"]["prompt"]["oneOf"][1]["maxItems"] = settings.batch_limit
    for body in ("TranslateBody", "FileBody", "SuggestBody"):
        schemas[body]["properties"]["source"]["enum"] = ["auto", *codes]
        schemas[body]["properties"]["target"]["enum"] = codes or [""]
    schemas["TranslateBody"]["properties"]["alternatives"]["maximum"] = settings.alternatives_limit
    if settings.suggestions is None:
        del content["paths"]["/suggest"], schemas["SuggestBody"]
    if not settings.files:
        del content["paths"]["/translate_file"], content["paths"]["/download_file/{name}"]
        del schemas["FileBody"], schemas["FileReport"]
    _add_errors(content)
    return content


def _add_errors(content: dict[str, Any]) -> None:
    """Add the error responses to each operation that computes, each with the schema of its error object."""
    common = content["components"].pop("responses")
    for path, operations in content["paths"].items():
        error = "CompletionError" if path.startswith("/v1/") else "Error"
        schema = {"schema": {"$ref": f"#/components/schemas/{error}"}}
        responses = operations.get("post", {}).get("responses", {})
        for status, response in (common | responses).items():
            if "content" not in response:
                responses[status] = response | {"content": {"application/json": schema}}


def static_routes() -> list[Route]:
    """Return one route per file for a browser."""
    return [Route(address, _file_endpoint(path)) for address, path in _FILES.items()]


def _file_endpoint(path: Path) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that sends a file, or 304 if the browser has it already."""
    content = path.read_bytes()
    headers = {"etag": f'"{sha256(content).hexdigest()[:32]}"', "cache-control": "no-cache"}

    async def endpoint(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=_MEDIA_TYPES[path.suffix])

    return endpoint
