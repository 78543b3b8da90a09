"""Routes about the server itself: /health, /metrics and /spec (OpenAPI)."""

from __future__ import annotations

import hmac
import json
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

__all__ = ["document", "routes"]


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
    return json_response(document(service.settings, service.models.languages))


def routes() -> list[Route]:
    """Return the routes of this module."""
    return [
        Route("/health", health, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
        Route("/spec", spec, methods=["GET"]),
    ]


def document(settings: ServeSettings, codes: list[str]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a server: `openapi.json` with its limits.

    Args:
        settings: the server's limits.
        codes: codes of the served languages.
    """
    content: dict[str, Any] = json.loads(Path(__file__).with_name("openapi.json").read_text(encoding="utf-8"))
    content["info"]["version"] = __version__
    schemas = content["components"]["schemas"]
    schemas["Text"]["maxLength"] = settings.char_limit
    schemas["Texts"]["oneOf"][1]["maxItems"] = settings.batch_limit
    schemas["CompletionBody"]["properties"]["prompt"]["oneOf"][1]["maxItems"] = settings.batch_limit
    fields = schemas["TranslateBody"]["properties"]
    fields["source"]["enum"] = ["auto", *codes]
    fields["target"]["enum"] = codes or [""]
    fields["alternatives"]["maximum"] = settings.alternatives_limit
    for name in ("Translate", "Detect", "Classify"):  # a form holds one text
        form = schemas[f"{name}Body"]
        single = {"q": {"$ref": "#/components/schemas/Text"}}
        schemas[f"{name}Form"] = form | {"properties": form["properties"] | single}
    add_errors(content)
    return content


def add_errors(content: dict[str, Any]) -> None:
    """Add the error responses to each operation that computes, each with the schema of its error object."""
    common = content["components"].pop("responses")
    for path, operations in content["paths"].items():
        error = "CompletionError" if path.startswith("/v1/") else "Error"
        schema = {"schema": {"$ref": f"#/components/schemas/{error}"}}
        responses = operations.get("post", {}).get("responses", {})
        for status, response in (common | responses).items():
            if "content" not in response:
                responses[status] = response | {"content": {"application/json": schema}}
