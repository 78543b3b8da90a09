"""GET /spec: the interface as an OpenAPI 3.1 document, with the limits of this server."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads import __version__
from manyheads.serving.answers import json_answer
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
# What goes wrong, and when.
WRONG = {
    "400": "something is wrong with the request; the message names it",
    "403": "the key is wrong, or this name or origin may not call",
    "408": "the body came too slowly",
    "413": "the body is too large",
    "429": "too many requests of this key or address; Retry-After says when",
    "503": "the server is busy, starting or ending; Retry-After says when",
    "504": "the request took too long and was stopped",
}


async def spec(request: Request) -> Response:
    """GET /spec."""
    service = Service.of(request)
    return json_answer(document(service.settings, service.models.languages))


def routes() -> list[Route]:
    """The one."""
    return [Route("/spec", spec, methods=["GET"])]


def document(settings: ServeSettings, codes: list[str]) -> Schema:
    """The whole document, where these languages are served."""
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
            "/languages": {"get": read("The languages and what each can be translated into", languages())},
            "/frontend/settings": {"get": read("Limits and what is on", {"type": "object"})},
            "/health": {"get": health()},
            "/classify": {"post": classify(settings)},
            "/v1/completions": {"post": complete(settings)},
            "/v1/models": {"get": read("The language models", {"type": "object"})},
        },
    }


def one_or_list(schema: Schema) -> Schema:
    """A value for a text, or a list of them for a list of texts."""
    return {"oneOf": [schema, {"type": "array", "items": schema}]}


def texts(settings: ServeSettings) -> Schema:
    """One text or several."""
    text = TEXT | {"minLength": 1, "maxLength": settings.char_limit}
    many = {"type": "array", "items": TEXT, "minItems": 1, "maxItems": settings.batch_limit}
    return {"oneOf": [text, many]}


def body(properties: dict[str, Schema], required: list[str], *, forms: bool = True) -> Schema:
    """The body of a request; of a form, only single texts."""
    schema: Schema = {"type": "object", "properties": properties, "required": required}
    kinds = {"application/json": {"schema": schema}}
    if forms:
        single = {name: one.get("oneOf", [one])[0] for name, one in properties.items()}
        form = {"schema": schema | {"properties": single}}
        kinds |= {"application/x-www-form-urlencoded": form, "multipart/form-data": form}
    return {"required": True, "content": kinds}


def posted(summary: str, request: Schema, answer: Schema) -> Schema:
    """An operation that computes."""
    errors = {
        status: {"description": meaning, "content": {"application/json": {"schema": ERROR}}}
        for status, meaning in WRONG.items()
    }
    good = {"200": {"description": "done", "content": {"application/json": {"schema": answer}}}}
    return {"summary": summary, "requestBody": request, "responses": good | errors}


def read(summary: str, answer: Schema) -> Schema:
    """An operation that only reads."""
    good = {"description": "done", "content": {"application/json": {"schema": answer}}}
    return {"summary": summary, "responses": {"200": good}}


def translate(settings: ServeSettings, codes: list[str]) -> Schema:
    """POST /translate."""
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
    return posted("Translate a text or several", body(properties, ["q", "source", "target"]), answer)


def detect(settings: ServeSettings) -> Schema:
    """POST /detect."""
    answer = {"type": "array", "items": LANGUAGE, "minItems": 1}
    return posted("Tell the language of a text", body({"q": texts(settings), "api_key": KEY}, ["q"]), answer)


def languages() -> Schema:
    """What GET /languages answers."""
    properties = {"code": TEXT, "name": TEXT, "targets": {"type": "array", "items": TEXT}}
    return {"type": "array", "items": {"type": "object", "properties": properties, "required": list(properties)}}


def health() -> Schema:
    """GET /health."""
    answer = {"type": "object", "properties": {"status": TEXT}, "required": ["status"]}
    found = read("Whether the models are ready", answer)
    found["responses"]["503"] = found["responses"]["200"] | {"description": "starting or stopping"}
    return found


def classify(settings: ServeSettings) -> Schema:
    """POST /classify."""
    properties = {"q": texts(settings), "model": TEXT | {"description": "the name of a run"}, "api_key": KEY}
    found = posted("Tell the class of a text or several", body(properties, ["q"]), one_or_list(CLASS))
    return with_missing(found, "no classifier of this name is served")


def complete(settings: ServeSettings) -> Schema:
    """POST /v1/completions."""
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
    found = posted(
        "Go on with a text (OpenAI's shape)", body(properties, ["prompt"], forms=False), {"type": "object"}
    )
    event = {"type": "object", "properties": {"data": TEXT}, "required": ["data"]}
    found["responses"]["200"]["content"]["text/event-stream"] = {"schema": event}
    error = {"type": "object", "properties": {"error": {"type": "object"}}, "required": ["error"]}
    for status in WRONG:
        found["responses"][status]["content"] = {"application/json": {"schema": error}}
    found = with_missing(found, "no language model of this name is served")
    found["responses"]["404"]["content"] = {"application/json": {"schema": error}}
    return found


def with_missing(operation: Schema, meaning: str) -> Schema:
    """An operation that may name a model that is not there."""
    missing = {"description": meaning, "content": {"application/json": {"schema": ERROR}}}
    return operation | {"responses": operation["responses"] | {"404": missing}}
