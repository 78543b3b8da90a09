"""Request fields from JSON, a form, a multipart form, or the query string.

The body is read here and not by starlette's `Request.form` and `Request.json`, which have no limit of time for slow
clients, take no query string beside a form, and have other error messages than LibreTranslate.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from manyheads.serving.responses import ApiError
from manyheads.serving.settings import ServeSettings

_MULTIPART = "multipart/form-data"
_MAX_FIELDS = 1_000
_BODY_SECONDS = 10.0  # that a client may take to send its body, and for each further MiB of the limit
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Fields:
    """The fields of a request by name.

    All methods but `get` raise `ApiError` 400 with the name of the field where its value is missing and has no
    default, is of another type, or is out of range.

    Attributes:
        values: texts, lists of the texts of a name that a form repeats, or with JSON values of any type.
        is_json: whether the body was JSON.
    """

    values: Mapping[str, Any]
    is_json: bool

    def get(self, name: str) -> Any:
        """Return a value as it was sent; None if it is missing, empty or null."""
        value = self.values.get(name)
        return None if value in (None, "", []) else value

    def single(self, name: str) -> Any:
        """Return a value as `get`; a form may repeat it, but not with different texts."""
        value = self.get(name)
        if self.is_json or not isinstance(value, list):
            return value
        texts = set(filter(None, value))
        if len(texts) > 1:
            raise ApiError(400, f"Invalid request: {name} parameter is given {len(texts)} times, each different")
        return next(iter(texts), None)

    def text(self, name: str) -> str | None:
        """Return a text; None if it is missing."""
        value = self.single(name)
        if value is not None and not isinstance(value, str):
            raise ApiError(400, f"Invalid request: {name} parameter must be text")
        return value

    def required(self, name: str) -> str:
        """Return a text that must not be missing."""
        value = self.text(name)
        if value is None:
            raise missing_field(name)
        return value

    def integer(self, name: str, default: int, least: int | None = 0, most: int | None = None) -> int:
        """Return an integer from `least` to `most`, which may be written as text."""
        value = self.single(name)
        if value is None:
            return default
        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ApiError(400, f"Invalid request: {name} parameter must be a whole number")
        if least is not None and value < least:
            raise ApiError(400, f"Invalid request: {name} parameter must be >= {least}")
        if most is not None and value > most:
            raise ApiError(400, f"Invalid request: {name} parameter must be <= {most}")
        return value

    def number(self, name: str, default: float) -> float:
        """Return a finite number, which may be written as text."""
        value = self.single(name)
        if value is None:
            return default
        try:
            number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
        except (ValueError, OverflowError):
            number = None
        if number is None or not math.isfinite(number):
            raise ApiError(400, f"Invalid request: {name} parameter must be a number")
        return number

    def boolean(self, name: str, *, default: bool = False) -> bool:
        """Return a JSON boolean."""
        value = self.single(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ApiError(400, f"Invalid request: {name} parameter must be true or false")
        return value

    def texts(self, name: str) -> list[str]:
        """Return the texts of a field that holds one, or a list of them (repeated in a form); at least one."""
        value = self.get(name)
        if value is None:
            raise missing_field(name)
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ApiError(400, f"Invalid request: {name} parameter must be text or a list of texts")
        if not self.is_json:
            texts = [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts]
        return [replace_surrogates(text) for text in texts]

    def limited_texts(self, settings: ServeSettings) -> tuple[list[str], bool]:
        """Return the texts `q`, whose number and length are limited, and whether they were sent as a list."""
        texts = self.texts("q")
        check_number_and_lengths(texts, settings)
        return texts, isinstance(self.get("q"), list)

    def model_name(self, models: Collection[str], kind: str) -> str:
        """Return the field `model`, which names one of the models; it may be missing where there is only one.

        Raises:
            ApiError: no model has this name (404), or no name was given where there are several models (400).
        """
        name = self.text("model")
        if not models:
            raise ApiError(404, f"No {kind} is served here")
        if name is None and len(models) == 1:
            return next(iter(models))
        if name is not None and name in models:
            return name
        raise ApiError(404 if name else 400, f"model must be one of: {', '.join(models)}")


def check_number_and_lengths(texts: Sequence[str], settings: ServeSettings) -> None:
    """Raise `ApiError` 400 if a request has more texts than allowed, or as `check_lengths`."""
    _check_size(len(texts), settings.batch_limit)
    check_lengths(texts, settings)


def check_lengths(texts: Sequence[str], settings: ServeSettings) -> None:
    """Raise `ApiError` 400 if a text, or all texts of a request together, have more characters than allowed."""
    _check_size(max(map(len, texts), default=0), settings.char_limit)
    _check_size(sum(map(len, texts)), settings.request_char_limit)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise ApiError(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")


def missing_field(name: str) -> ApiError:
    """Return the error for a missing field."""
    return ApiError(400, f"Invalid request: missing {name} parameter")


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON can contain, and join pairs of them to one character."""
    return (
        text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if _SURROGATE.search(text)
        else text
    )


@dataclass(frozen=True)
class SentFile:
    """A file of a multipart form: its name without folders, and its bytes."""

    name: str
    data: bytes


async def read_fields(request: Request, body_limit: int, file: str = "") -> Fields:
    """Read a request's body and return its fields, together with those of the query string.

    JSON is read as such whatever its content type says: `curl -d` calls everything a form. The field that is named
    `file` may be a file of a multipart form, which is returned as a `SentFile`.

    Raises:
        ApiError: the body is too large (413), comes too slowly (408), or cannot be read (400).
        ClientDisconnected: the client closed its connection.
    """
    body = await _read_body(request, body_limit)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    declared_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    is_json = declared_json or (kind != _MULTIPART and body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"))
    values: dict[str, Any] = {}
    if is_json:
        values = _json_object(body)
    elif kind == _MULTIPART:
        values = _group(await _multipart_pairs(request.headers, body, file))
    elif kind == "application/x-www-form-urlencoded":
        values = _group(_urlencoded_pairs(body))
    elif body.strip():
        declared = f"is declared as {kind[:40]}" if kind else "has no Content-Type"
        raise ApiError(400, f"Invalid request: the body {declared}; send JSON (application/json) or a form")
    query = _group(_urlencoded_pairs(request.scope["query_string"]))
    for name in query.keys() & values.keys():
        if query[name] != values[name]:
            raise ApiError(400, f"Invalid request: {name[:20]} parameter differs in the query string and the body")
    return Fields(query | values, is_json=is_json)


def _group(pairs: Sequence[tuple[str, str | SentFile]]) -> dict[str, Any]:
    """Return the values of a form by name; a list where a name is repeated."""
    values: dict[str, list[str | SentFile]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: found[0] if len(found) == 1 else found for name, found in values.items()}


async def _read_body(request: Request, limit: int) -> bytes:
    """Return the whole body."""
    declared = request.headers.get("content-length", "0")
    too_large = ApiError(413, f"Invalid request: the body has more than {limit} bytes")
    if not declared.isdecimal() or int(declared[:20]) > limit:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(_BODY_SECONDS * max(1.0, limit / 2**20)):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > limit:
                    raise too_large
    except TimeoutError as error:
        raise ApiError(408, "Invalid request: the body came too slowly") from error
    return b"".join(parts)


def _json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object in UTF-8.

    Raises:
        ApiError: 400, the body is not valid JSON or not an object, or repeats a name.
    """
    try:
        content = json.loads(body.decode("utf-8-sig"), object_pairs_hook=_unique_names)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "Invalid JSON format") from error
    if not isinstance(content, dict):
        raise ApiError(400, "Invalid JSON format")
    return content


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of a JSON document; raises `ApiError` as `_json_object`."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ApiError(400, f"Invalid request: {name[:20]} parameter is given twice; send a list")
        values[name] = value
    return values


def _urlencoded_pairs(data: bytes) -> list[tuple[str, str]]:
    """Return the names and values of a URL-encoded form."""
    try:
        return parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise ApiError(400, "Invalid request: the form cannot be read") from error


async def _multipart_pairs(headers: Headers, body: bytes, file: str) -> list[tuple[str, str | SentFile]]:
    """Return the names and values of a multipart form, in which only the field `file` may be a file."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body
        yield b""

    parser = MultiPartParser(
        headers, stream(), max_files=_MAX_FIELDS, max_fields=_MAX_FIELDS, max_part_size=len(body) + 1
    )
    try:
        form = await parser.parse()
    except (MultiPartException, HTTPException, ValueError, LookupError) as error:
        raise ApiError(400, "Invalid request: the form cannot be read") from error
    pairs: list[tuple[str, str | SentFile]] = []
    try:
        for name, value in form.multi_items():
            if isinstance(value, str):
                pairs.append((name, value))
            elif value.filename and name == file:
                pairs.append((name, SentFile(re.split(r"[/\\]", value.filename)[-1], await value.read())))
            elif value.filename:
                raise ApiError(400, f"Invalid request: {name[:20]} parameter must be text, not a file")
    finally:
        await form.close()
    return pairs
