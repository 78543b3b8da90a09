"""GET /spec: the interface as an OpenAPI 3.1 document, with the limits of this server."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads import __version__
from manyheads.serving.responses import json_response
from manyheads.serving.service import Service
from manyheads.serving.settings import ServeSettings

__all__ = ["document", "routes"]

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
ERROR: Schema = {"type": "object", "properties": {"error": TEXT}, "required": ["error"]}
LANGUAGE: Schema = {
    "type": "object",
    "properties": {"confidence": {"type": "number", "minimum": 0, "maximum": 100}, "language": TEXT},
    "required": ["confidence", "language"],
}
CLASS: Schema = {
    "type": "object",
    "properties": {
        "label": TEXT,
        "probability": {"type": "number", "minimum": 0, "maximum": 1},
        "probabilities": {"type": "object", "additionalProperties": {"type": "number"}},
        "truncated": {"type": "boolean"},
    },
    "required": ["label", "probability", "probabilities", "truncated"],
}
KEY: Schema = TEXT | {"description": "a key, where the server asks for one; or Authorization: Bearer KEY"}
# Meaning of each error status.
ERROR_STATUSES = {
    "400": "something is wrong with the request; the message names it",
    "403": "the key is wrong, or this name or origin may not call",
    "408": "the body came too slowly",
    "413": "the body is too large",
    "429": "too many requests of this key or address; Retry-After says when",
    "503": "the server is busy, starting or ending; Retry-After says when",
    "504": "the request took too long and was stopped",
}


async def spec(request: Request) -> Response:
    """GET /spec: the OpenAPI document."""
    service = Service.of(request)
    return json_response(document(service.settings, service.models.languages))


def routes() -> list[Route]:
    """Return the routes of this module."""
    return [Route("/spec", spec, methods=["GET"])]


def document(settings: ServeSettings, codes: list[str]) -> Schema:
    """Return the OpenAPI document of a server.

    Args:
        settings: the server's limits.
        codes: codes of the served languages.
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "manyheads",
            "version": __version__,
            "description": "LibreTranslate's interface for one's own models, and more for other kinds.",
        },
        "paths": {
            "/translate": {"post": translate(settings, codes)},
            "/detect": {"post": detect(settings)},
            "/languages": {"get": get_operation("The languages and what each can be translated into", languages())},
            "/frontend/settings": {"get": get_operation("Limits and what is on", {"type": "object"})},
            "/health": {"get": health()},
            "/classify": {"post": classify(settings)},
            "/v1/completions": {"post": complete(settings)},
            "/v1/models": {"get": get_operation("The language models", {"type": "object"})},
        },
    }


def one_or_list(schema: Schema) -> Schema:
    """Return the schema of a value for one text, or a list of values for a list of texts."""
    return {"oneOf": [schema, {"type": "array", "items": schema}]}


def texts(settings: ServeSettings) -> Schema:
    """Return the schema of one text or a list of texts."""
    text = TEXT | {"minLength": 1, "maxLength": settings.char_limit}
    many = {"type": "array", "items": TEXT, "minItems": 1, "maxItems": settings.batch_limit}
    return {"oneOf": [text, many]}


def body(properties: dict[str, Schema], required: list[str], *, forms: bool = True) -> Schema:
    """Return a request body; a form takes single texts only."""
    schema: Schema = {"type": "object", "properties": properties, "required": required}
    kinds = {"application/json": {"schema": schema}}
    if forms:
        single = {name: value.get("oneOf", [value])[0] for name, value in properties.items()}
        form = {"schema": schema | {"properties": single}}
        kinds |= {"application/x-www-form-urlencoded": form, "multipart/form-data": form}
    return {"required": True, "content": kinds}


def post_operation(summary: str, request: Schema, answer: Schema) -> Schema:
    """Return a POST operation that computes."""
    errors = {
        status: {"description": meaning, "content": {"application/json": {"schema": ERROR}}}
        for status, meaning in ERROR_STATUSES.items()
    }
    success = {"200": {"description": "done", "content": {"application/json": {"schema": answer}}}}
    return {"summary": summary, "requestBody": request, "responses": success | errors}


def get_operation(summary: str, answer: Schema) -> Schema:
    """Return a GET operation."""
    success = {"description": "done", "content": {"application/json": {"schema": answer}}}
    return {"summary": summary, "responses": {"200": success}}


def translate(settings: ServeSettings, codes: list[str]) -> Schema:
    """Return the operation of POST /translate."""
    properties: dict[str, Schema] = {
        "q": texts(settings),
        "source": TEXT | {"enum": ["auto", *codes]},
        "target": TEXT | {"enum": codes or [""]},
        "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
        "alternatives": {"type": "integer", "minimum": 0, "maximum": settings.alternatives_limit, "default": 0},
        "api_key": KEY,
    }
    answer = {
        "type": "object",
        "properties": {
            "translatedText": one_or_list(TEXT),
            "detectedLanguage": one_or_list(LANGUAGE) | {"description": "only with source = auto"},
            "alternatives": {"type": "array", "description": "only when asked for"},
        },
        "required": ["translatedText"],
    }
    return post_operation("Translate a text or several", body(properties, ["q", "source", "target"]), answer)


def detect(settings: ServeSettings) -> Schema:
    """Return the operation of POST /detect."""
    answer = {"type": "array", "items": LANGUAGE, "minItems": 1}
    return post_operation(
        "Tell the language of a text", body({"q": texts(settings), "api_key": KEY}, ["q"]), answer
    )


def languages() -> Schema:
    """Return the response schema of GET /languages."""
    properties = {"code": TEXT, "name": TEXT, "targets": {"type": "array", "items": TEXT}}
    return {"type": "array", "items": {"type": "object", "properties": properties, "required": list(properties)}}


def health() -> Schema:
    """Return the operation of GET /health."""
    answer = {"type": "object", "properties": {"status": TEXT}, "required": ["status"]}
    operation = get_operation("Whether the models are ready", answer)
    operation["responses"]["503"] = operation["responses"]["200"] | {"description": "starting or stopping"}
    return operation


def classify(settings: ServeSettings) -> Schema:
    """Return the operation of POST /classify."""
    properties = {"q": texts(settings), "model": TEXT | {"description": "the name of a run"}, "api_key": KEY}
    operation = post_operation("Tell the class of a text or several", body(properties, ["q"]), one_or_list(CLASS))
    return with_not_found(operation, "no classifier of this name is served")


def complete(settings: ServeSettings) -> Schema:
    """Return the operation of POST /v1/completions."""
    properties: dict[str, Schema] = {
        "model": TEXT | {"description": "the name of a run"},
        "prompt": {"oneOf": [TEXT, {"type": "array", "items": TEXT, "maxItems": settings.batch_limit}]},
        "max_tokens": {"type": "integer", "minimum": 1, "maximum": 4096, "default": 16},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2, "default": 1},
        "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1},
        "n": {"type": "integer", "minimum": 1, "maximum": 16, "default": 1},
        "seed": {"type": "integer", "minimum": 0},
        "stop": {"oneOf": [TEXT, {"type": "array", "items": TEXT, "maxItems": 4}]},
        "echo": {"type": "boolean", "default": False},
        "stream": {"type": "boolean", "default": False},
    }
    operation = post_operation(
        "Go on with a text (OpenAI's shape)", body(properties, ["prompt"], forms=False), {"type": "object"}
    )
    event = {"type": "object", "properties": {"data": TEXT}, "required": ["data"]}
    operation["responses"]["200"]["content"]["text/event-stream"] = {"schema": event}
    error = {"type": "object", "properties": {"error": {"type": "object"}}, "required": ["error"]}
    for status in ERROR_STATUSES:
        operation["responses"][status]["content"] = {"application/json": {"schema": error}}
    operation = with_not_found(operation, "no language model of this name is served")
    operation["responses"]["404"]["content"] = {"application/json": {"schema": error}}
    return operation


def with_not_found(operation: Schema, meaning: str) -> Schema:
    """Add a 404 response to an operation that names a model."""
    missing = {"description": meaning, "content": {"application/json": {"schema": ERROR}}}
    return operation | {"responses": operation["responses"] | {"404": missing}}
