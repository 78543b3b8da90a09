"""Fields of requests: no value that a client sends is dropped in silence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.requests import Request

from manyheads.serving.fields import Fields, read_fields
from manyheads.serving.responses import ApiError

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
MULTIPART = "multipart/form-data; boundary=x"


def read(body: str, kind: str | None = FORM, query: str = "") -> Fields:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body.encode()}

    headers = [] if kind is None else [(b"content-type", kind.encode())]
    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": query.encode()}
    return asyncio.run(read_fields(Request(scope, receive), 10**7))


def multipart(*parts: tuple[str, str]) -> str:
    return "".join(f"--x\r\nContent-Disposition: form-data; {name}\r\n\r\n{text}\r\n" for name, text in parts) + (
        "--x--\r\n"
    )


@pytest.mark.parametrize(
    ("body", "kind", "query", "expected"),
    [
        ("q=A&q=B", FORM, "", ["A", "B"]),
        ("q=A&q=A", FORM, "", ["A", "A"]),
        ("q=&q=B", FORM, "", ["", "B"]),
        ("q=A%0D%0AB&q=C%0D", FORM, "", ["A\nB", "C\n"]),
        ("", None, "q=A&q=B", ["A", "B"]),
        ("q=A", FORM, "q=A", ["A"]),
        (multipart(('name="q"', "A"), ('name="q"', "B")), MULTIPART, "", ["A", "B"]),
        (multipart(('name="q"', "A"), ('name="f"; filename=""', "")), MULTIPART, "", ["A"]),
        ('{"q": ["A", "B"]}', JSON, "", ["A", "B"]),
        ('{"q": "A"}', JSON, "q=A&x=1", ["A"]),
        ('{"source": "de"}', JSON, "q=A", ["A"]),
        ('{"q": "A&q=B"}', FORM, "", ["A&q=B"]),  # JSON without its content type: curl -d
        (' \n{"q": "A"}', None, "", ["A"]),
        ('\ufeff{"q": "A"}', "text/plain;charset=UTF-8", "", ["A"]),
        ('{"q": "A"}', "application/octet-stream", "", ["A"]),
    ],
)
def test_every_text_is_read(body: str, kind: str | None, query: str, expected: list[str]) -> None:
    fields = read(body, kind, query)
    assert fields.texts("q") == expected
    assert isinstance(fields.get("q"), list) is (len(expected) > 1)


@pytest.mark.parametrize(
    ("body", "kind", "query", "message"),
    [
        ("q=A", FORM, "q=B", "q parameter differs in the query string and the body"),
        ("source=de", FORM, "source=fr", "source parameter differs in the query string and the body"),
        ('{"q": "A"}', JSON, "q=B", "q parameter differs in the query string and the body"),
        ('{"q": "A", "q": "B"}', JSON, "", "q parameter is given twice; send a list"),
        ('{"q": "A", "changes": {"mask": true, "mask": false}}', JSON, "", "mask parameter is given twice"),
        ('{"q": "A", "q": "B"}', FORM, "", "q parameter is given twice; send a list"),
        (multipart(('name="q"; filename="a.txt"', "A")), MULTIPART, "", "q parameter must be text, not a file"),
        (multipart(('name="f"; filename="a"', "A"), ('name="g"; filename="b"', "B")), MULTIPART, "",
         "f parameter must be text, not a file"),
        ("q=A&source=de", "text/plain", "", "the body is declared as text/plain; send JSON"),
        ("q=A&source=de", None, "", "the body has no Content-Type; send JSON"),
        ("&".join(["q=A"] * 1001), FORM, "", "the form cannot be read"),
        ("--x\r\n\r\n", "multipart/form-data", "", "the form cannot be read"),
    ],
)  # fmt: skip
def test_a_request_that_contradicts_itself_is_refused(
    body: str, kind: str | None, query: str, message: str
) -> None:
    with pytest.raises(ApiError, match=message) as caught:
        read(body, kind, query)
    assert caught.value.status == 400


@pytest.mark.parametrize("body", ['{"q": "A"', '{"q": A}', "{q=A"])
def test_a_body_that_begins_as_json_is_read_as_json(body: str) -> None:
    with pytest.raises(ApiError, match="Invalid JSON format"):
        read(body)


@pytest.mark.parametrize(
    ("name", "values", "read_field", "expected"),
    [
        ("source", ["de", "de"], Fields.text, "de"),
        ("source", ["", "de"], Fields.required, "de"),
        ("target", ["de", "fr", "de"], Fields.text, "target parameter is given 2 times, each different"),
        ("format", ["text", "html"], Fields.text, "format parameter is given 2 times"),
        ("api_key", ["secret", "other"], Fields.text, "api_key parameter is given 2 times"),
        ("alternatives", ["3", "3"], lambda fields, name: fields.integer(name, 0), 3),
        (
            "alternatives",
            ["3", "4"],
            lambda fields, name: fields.integer(name, 0),
            "alternatives parameter is given",
        ),
        (
            "temperature",
            ["1", "0.5"],
            lambda fields, name: fields.number(name, 0),
            "temperature parameter is given",
        ),
    ],
)
def test_a_single_value_is_not_repeated_with_another(
    name: str, values: list[str], read_field: Callable[[Fields, str], Any], expected: Any
) -> None:
    fields = read("&".join(f"{name}={value}" for value in values))
    if isinstance(expected, str) and " " in expected:
        with pytest.raises(ApiError, match=expected) as caught:
            read_field(fields, name)
        assert "secret" not in str(caught.value)
    else:
        assert read_field(fields, name) == expected


def test_a_large_object_with_a_repeated_name_is_refused_at_once() -> None:
    names = [f'"{number}": 0' for number in range(100_000)]
    with pytest.raises(ApiError, match="99999 parameter is given twice"):
        read("{" + ", ".join([*names, names[-1]]) + "}", JSON)


def test_json_lists_are_no_single_values() -> None:
    with pytest.raises(ApiError, match="source parameter must be text"):
        read(json.dumps({"source": ["de", "de"]}), JSON).text("source")
