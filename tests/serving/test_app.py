"""Every exception of a route is answered in the format that its clients expect, and counted and logged once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from manyheads.errors import DataError, UsageError
from manyheads.serving.app import _CLIENT_CLOSED_REQUEST, App, _response_to
from manyheads.serving.responses import ApiError
from manyheads.serving.settings import ServeSettings


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ApiError(429, "Slowdown"), 429, "Slowdown"),
        (UsageError("2 texts in one example"), 400, "2 texts in one example"),
        (HTTPException(404), 404, "Not Found"),
    ],
)
def test_an_expected_error_has_its_status_and_the_format_of_its_path(
    error: Exception, status: int, message: str
) -> None:
    response = _response_to(error, "/classify")
    assert response is not None
    assert (response.status_code, response.body) == (status, f'{{"error": "{message}"}}'.encode())
    response = _response_to(error, "/v1/completions")
    assert response is not None
    assert response.status_code == status
    assert f'"message": "{message}"'.encode() in bytes(response.body)


def test_the_answer_to_a_method_that_is_not_allowed_names_the_allowed_methods() -> None:
    response = _response_to(HTTPException(405, headers={"Allow": "POST"}), "/translate")
    assert response is not None
    assert response.headers["allow"] == "POST"


def test_a_disconnected_client_is_an_expected_error_and_internal_errors_are_not() -> None:
    response = _response_to(ClientDisconnect(), "/translate")
    assert response is not None
    assert response.status_code == _CLIENT_CLOSED_REQUEST
    assert _response_to(DataError("/home/somebody/keys.json cannot be read"), "/translate") is None
    assert _response_to(ZeroDivisionError("secret"), "/translate") is None


def send_request(
    path: str, error: Exception | None = None
) -> tuple[httpx.Response, list[str], list[tuple[Any, ...]]]:
    """Send a request to an application whose routes raise an error; return the answer, the log and the counts."""
    log, counted = list[str](), list[tuple[Any, ...]]()
    service = SimpleNamespace(
        settings=ServeSettings(),
        ready=True,
        requests=SimpleNamespace(draining=False, overload_error=lambda: None),
        metrics=SimpleNamespace(count_request=lambda *request: counted.append(request[:3])),
        log=log.append,
    )
    app = App(service)  # type: ignore[arg-type]
    if error is not None:

        async def fail(*_: object) -> None:
            raise error

        app.router = fail  # type: ignore[assignment]

    async def post() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.post(f"http://localhost{path}", params={"q": "secret"})

    return asyncio.run(post()), log, counted


def test_an_unexpected_error_is_500_and_its_message_is_not_exposed() -> None:
    response, log, counted = send_request("/translate", ZeroDivisionError("secret"))
    assert (response.status_code, response.json()) == (500, {"error": "Internal server error"})
    assert response.headers["x-content-type-options"] == "nosniff"
    assert log[0].startswith("fault ZeroDivisionError at ")
    assert "secret" not in "".join(log)
    assert counted == [("POST", "/translate", 500)]


@pytest.mark.parametrize("path", ["//translate", "////translate"])
def test_slashes_before_a_path_count_as_one(path: str) -> None:
    response, _, counted = send_request(path, UsageError("reached"))
    assert (response.status_code, counted) == (400, [("POST", "/translate", 400)])


def test_a_path_without_a_route_is_counted_as_other() -> None:
    for path in ("/secret", "//secret.example/translate", "/translate//", "/v1//models"):
        response, log, counted = send_request(path)
        assert response.status_code == 404
        assert "location" not in response.headers  # no redirect to another host
        assert counted == [("POST", "other", 404)]
        assert "secret" not in "".join(log)
