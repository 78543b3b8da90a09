"""The parameters of a request, wherever they stand: JSON, form, multipart, or query string."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from manyheads.serving.answers import ClientGone, Refusal

__all__ = ["Fields", "missing", "read_fields", "readable"]

MOST_FIELDS = 100
SECONDS_TO_SEND = 10.0  # that a client may take for its body
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Fields:
    """Parameters by name.

    Attributes:
        values: text, or with JSON anything.
        is_json: whether they came as JSON.
    """

    values: Mapping[str, Any]
    is_json: bool

    def get(self, name: str) -> Any:
        """The value as it came; None when it is missing, empty or null."""
        value = self.values.get(name)
        return None if value in (None, "", []) else value

    def text(self, name: str) -> str | None:
        """A value that must be text; None when it is missing.

        Raises:
            Refusal: it is something else.
        """
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise Refusal(400, f"Invalid request: {name} parameter must be text")
        return value

    def required(self, name: str) -> str:
        """A value that must be there, and text."""
        value = self.text(name)
        if value is None:
            raise missing(name)
        return value

    def whole(self, name: str, default: int, least: int = 0) -> int:
        """A whole number, also as text."""
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", value):
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Refusal(400, f"Invalid request: {name} parameter must be a whole number")
        if value < least:
            raise Refusal(400, f"Invalid request: {name} parameter must be >= {least}")
        return value

    def number(self, name: str, default: float) -> float:
        """A number, also as text."""
        value = self.get(name)
        if value is None:
            return default
        try:
            found = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
        except (ValueError, OverflowError):
            found = None
        if found is None or found != found or abs(found) == float("inf"):
            raise Refusal(400, f"Invalid request: {name} parameter must be a number")
        return found

    def flag(self, name: str) -> bool:
        """Yes or no; no when it is missing."""
        value = self.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise Refusal(400, f"Invalid request: {name} parameter must be true or false")
        return value

    def texts(self, name: str) -> str | list[str]:
        """One text, or with JSON a list of texts, which is not empty."""
        value = self.get(name)
        if value is None:
            raise missing(name)
        if isinstance(value, str):
            return readable(value if self.is_json else value.replace("\r\n", "\n").replace("\r", "\n"))
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise Refusal(400, f"Invalid request: {name} parameter must be text or a list of texts")
        return [readable(one) for one in value]


def missing(name: str) -> Refusal:
    """What is said where a parameter is missing."""
    return Refusal(400, f"Invalid request: missing {name} parameter")


def readable(text: str) -> str:
    """Text without halves of characters, as JSON can spell them."""
    return (
        text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") if SURROGATE.search(text) else text
    )


async def read_fields(request: Request, body_limit: int) -> Fields:
    """Read the body and find the parameters; of several of one name the first counts, of the query string first.

    Raises:
        Refusal: the body is too large (413), comes too slowly (408), or cannot be read (400).
        ClientGone: the connection closed meanwhile.
    """
    body = await read_body(request, body_limit)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return Fields(json_object(body), is_json=True)
    pairs = pairs_of(request.scope["query_string"])
    if kind == "application/x-www-form-urlencoded":
        pairs += pairs_of(body)
    elif kind == "multipart/form-data":
        pairs += await parts_of(request.headers, body)
    return Fields(dict(reversed(pairs)), is_json=False)


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body."""
    said = request.headers.get("content-length", "0")
    too_large = Refusal(413, f"Invalid request: the body has more than {limit} bytes")
    if not said.isdecimal() or int(said[:20]) > limit:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(SECONDS_TO_SEND):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > limit:
                    raise too_large
    except TimeoutError as error:
        raise Refusal(408, "Invalid request: the body came too slowly") from error
    except ClientDisconnect as error:
        raise ClientGone from error
    return b"".join(parts)


def json_object(body: bytes) -> dict[str, Any]:
    """A JSON object in UTF-8."""
    try:
        found = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "Invalid JSON format") from error
    if not isinstance(found, dict):
        raise Refusal(400, "Invalid JSON format")
    return found


def pairs_of(data: bytes) -> list[tuple[str, str]]:
    """Names and values of an encoded form."""
    try:
        return parse_qsl(data.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise Refusal(400, "Invalid request: the form cannot be read") from error


async def parts_of(headers: Headers, body: bytes) -> list[tuple[str, str]]:
    """Names and values of a form in parts; files are left out."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body
        yield b""

    parser = MultiPartParser(headers, stream(), max_files=1, max_fields=MOST_FIELDS, max_part_size=len(body) + 1)
    try:
        form = await parser.parse()
    except (MultiPartException, HTTPException, ValueError, LookupError) as error:
        raise Refusal(400, "Invalid request: the form cannot be read") from error
    pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    await form.close()
    return pairs
