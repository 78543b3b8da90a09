"""JSON responses and API errors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect as ClientDisconnected
from starlette.responses import Response

from manyheads.errors import printable

__all__ = ["ApiError", "ClientDisconnected", "error_response", "json_bytes", "json_response"]


class ApiError(Exception):
    """A request that is answered with an error status.

    Attributes:
        status: the HTTP status.
        message: message for the client; of the request it holds names of fields, languages and formats at most.
        headers: `Retry-After` in whole seconds, or none.
    """

    def __init__(self, status: int, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response; see `json_bytes`."""
    return Response(json_bytes(content), status, headers, media_type="application/json")


def json_bytes(content: object) -> bytes:
    """Encode a value as JSON in UTF-8; lone surrogates become "?"."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def error_response(error: ApiError, path: str) -> Response:
    """Return an error in the format that clients of a path expect: LibreTranslate's, or OpenAI's below /v1/."""
    message = printable(error.message)
    content: dict[str, Any] = {"error": message}
    if path.startswith("/v1/"):
        kind = "invalid_request_error" if error.status < 500 else "server_error"
        content = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return json_response(content, error.status, error.headers)
