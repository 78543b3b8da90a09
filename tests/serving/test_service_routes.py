"""The OpenAPI document names the limits of its server and every error, and all its references are defined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from manyheads import __version__
from manyheads.serving.service_routes import _document
from manyheads.serving.settings import ServeSettings

SETTINGS = ServeSettings(char_limit=1_009, batch_limit=53, alternatives_limit=7)
DOCUMENT = _document(SETTINGS, ["de", "en"])
SCHEMAS = DOCUMENT["components"]["schemas"]


def references(value: object) -> Iterator[str]:
    """Yield every reference in a document."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "$ref":
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema, or the schema that a reference names."""
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def body_of(path: str, kind: str) -> dict[str, Any]:
    """Return the properties of a request body."""
    schema = DOCUMENT["paths"][path]["post"]["requestBody"]["content"][kind]["schema"]
    return {name: resolved(value) for name, value in resolved(schema)["properties"].items()}


def test_every_reference_names_a_schema_and_every_schema_is_used() -> None:
    named = {reference.removeprefix("#/components/schemas/") for reference in references(DOCUMENT)}
    assert named == set(SCHEMAS)


def test_the_limits_of_the_server_are_in_the_document() -> None:
    fields = body_of("/translate", "application/json")
    text, texts = (resolved(schema) for schema in fields["q"]["oneOf"])
    assert (text["maxLength"], texts["maxItems"], fields["alternatives"]["maximum"]) == (1_009, 53, 7)
    assert fields["source"]["enum"] == ["auto", "de", "en"]
    assert fields["target"]["enum"] == ["de", "en"]
    prompts = resolved(body_of("/v1/completions", "application/json")["prompt"]["oneOf"][1])
    assert prompts["maxItems"] == 53
    assert DOCUMENT["info"]["version"] == __version__


def test_a_document_without_languages_is_valid_too() -> None:
    fields = _document(SETTINGS, [])["components"]["schemas"]["TranslateBody"]["properties"]
    assert (fields["source"]["enum"], fields["target"]["enum"]) == (["auto"], [""])


@pytest.mark.parametrize("path", ["/translate", "/detect", "/classify"])
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_has_the_fields_of_json_and_may_repeat_q(path: str, kind: str) -> None:
    assert body_of(path, kind) == body_of(path, "application/json")


@pytest.mark.parametrize(
    ("path", "error"),
    [("/translate", "Error"), ("/detect", "Error"), ("/classify", "Error"), ("/v1/completions", "CompletionError")],
)
def test_every_route_that_computes_lists_its_errors_with_their_schema(path: str, error: str) -> None:
    responses = DOCUMENT["paths"][path]["post"]["responses"]
    assert {"200", "400", "403", "408", "413", "429", "503", "504"} <= set(responses)
    for status, response in responses.items():
        if status != "200":
            schema = response["content"]["application/json"]["schema"]
            assert schema == {"$ref": f"#/components/schemas/{error}"}, status
