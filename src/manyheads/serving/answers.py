"""What goes back to a client: JSON, and refusals with the reason."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

__all__ = ["ClientGone", "Refusal", "as_json", "error_answer", "json_answer"]


class Refusal(Exception):
    """A request that is not answered as asked.

    Attributes:
        status: the HTTP status.
        message: for the client; it never holds text of the request beyond names of languages and formats.
        retry_after: seconds after which it may be tried again.
    """

    def __init__(self, status: int, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after

    def headers(self) -> dict[str, str]:
        """What the answer says beside its text."""
        return {} if self.retry_after is None else {"Retry-After": str(max(1, math.ceil(self.retry_after)))}


class ClientGone(Exception):
    """The client closed its connection before it was answered."""


def json_answer(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A document as the answer; what is no Unicode text in it becomes "?"."""
    return Response(as_json(content), status, headers, media_type="application/json")


def as_json(content: object) -> bytes:
    """A document as bytes."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def error_answer(refusal: Refusal, path: str) -> Response:
    """A refusal in the shape that clients of a path know: LibreTranslate's, or OpenAI's below /v1/."""
    content: dict[str, Any] = {"error": refusal.message}
    if path.startswith("/v1/"):
        kind = "invalid_request_error" if refusal.status < 500 else "server_error"
        content = {"error": {"message": refusal.message, "type": kind, "param": None, "code": None}}
    return json_answer(content, refusal.status, refusal.headers())
