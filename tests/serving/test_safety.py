"""Keys, limits, origins and hosts that a server accepts, and data that it never logs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest
from tests.serving.process import GERMAN, METRICS, TIMEOUT, Server, metric, serving

from manyheads.serving.keys import KeyFile

BODY = {"q": "a b. C d.", "source": "en", "target": "ko"}
SHORT = {"q": GERMAN[0], "source": "de", "target": "en"}
SLOW = BODY | {"q": ["a b. C d. E f. G h. " * 2] * 60}  # takes far longer than the limit
LIMIT = 1.0  # seconds
DEADLINE = 90.0  # seconds, also beside many busy processes; less than a second on an idle machine


@pytest.fixture(scope="module")
def strict_server(
    translator_run: Path, endless_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, dict[str, str]]]:
    """Start a server that requires keys, with low limits; yield it with its keys."""
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    file = KeyFile(path)
    secrets = {"any": file.add("any", 0), "few": file.add("few", 2)}
    options = ("--keys", path, "--timeout", LIMIT, "--queue", 3, "--body-limit", 4_000, "--cors-origin",
               "https://page.example", "--max-batch-tokens", 64)  # fmt: skip
    with serving(
        translator_run, endless_run, *options, environment={"MANYHEADS_METRICS_TOKEN": "see-all"}
    ) as server:
        with server.client() as client:  # the first inspection loads torch, which may take longer than the limit
            first, end = {"q": GERMAN[0], "model": "de-en", "api_key": secrets["any"]}, monotonic() + DEADLINE
            while client.post("/api/inspect", json=first).status_code != 200:
                assert monotonic() < end, server.text
        yield server, secrets
        assert server.end() == 0
        assert "fault" not in server.text
        for text in (*secrets.values(), GERMAN[0], "a b.", "see-all"):
            assert text not in server.text


def wait_until_idle(server: Server, client: httpx.Client) -> None:
    """Wait until nothing is computed any more; after the deadline, fail with the stacks of the server's threads."""
    end, names = monotonic() + DEADLINE, ("requests_running", "rows_computing")
    while any(values := [metric(client, name) for name in names]):
        if monotonic() > end:
            pytest.fail(f"{dict(zip(names, values, strict=True))} after {DEADLINE} seconds\n{server.abort()}")
        sleep(0.02)


def test_a_valid_key_is_required(strict_server: tuple[Server, dict[str, str]]) -> None:
    server, secrets = strict_server
    with server.client() as client:
        inspected = {"q": GERMAN[0], "model": "de-en"}
        for path, body in (("/translate", SHORT), ("/detect", {"q": "a"}), ("/api/inspect", inspected)):
            answer = client.post(path, json=body)
            assert answer.status_code == 400
            assert answer.json() == {"error": "Please contact the server operator to get an API key"}
            answer = client.post(path, json=body | {"api_key": "wrong"})
            assert (answer.status_code, answer.json()) == (403, {"error": "Invalid API key"})
            assert client.post(path, json=body | {"api_key": secrets["any"]}).status_code == 200
            assert (
                client.post(path, json=body, headers={"Authorization": f"Bearer {secrets['any']}"}).status_code
                == 200
            )
        assert client.get("/languages").status_code == 200
        assert client.get("/frontend/settings").json()["keyRequired"] is True


def test_requests_beyond_the_rate_limit_are_refused_with_retry_after(
    strict_server: tuple[Server, dict[str, str]],
) -> None:
    server, secrets = strict_server
    with server.client() as client:
        codes = [client.post("/translate", json=SHORT | {"api_key": secrets["few"]}) for _ in range(3)]
        assert [answer.status_code for answer in codes] == [200, 200, 429]
        assert codes[2].json() == {"error": "Slowdown: 2 per 1 minute"}
        assert 1 <= int(codes[2].headers["retry-after"]) <= 30
        assert client.post("/translate", json=SHORT | {"api_key": secrets["any"]}).status_code == 200


def test_a_request_beyond_the_time_limit_is_stopped_with_its_decoding(
    strict_server: tuple[Server, dict[str, str]],
) -> None:
    server, secrets = strict_server
    with server.client() as client:
        start = monotonic()
        answer = client.post("/translate", json=SLOW | {"api_key": secrets["any"]})
        assert answer.status_code == 504
        assert LIMIT <= monotonic() - start < LIMIT + DEADLINE
        wait_until_idle(server, client)
        assert client.post("/translate", json=SHORT | {"api_key": secrets["any"]}).status_code == 200


@pytest.mark.slow
@pytest.mark.weekly
def test_an_inspection_beyond_the_time_limit_is_stopped(endless_run: Path) -> None:
    token = {"MANYHEADS_METRICS_TOKEN": "see-all"}
    with serving(endless_run, "--timeout", 0.1, environment=token) as server, server.client() as client:
        body = {"q": "a b c d e f g h " * 15, "model": "en-ko", "beam": 16}  # takes more than a second
        assert client.post("/api/inspect", json=body).status_code == 504
        wait_until_idle(server, client)
        server.end()


def test_the_work_of_a_client_that_disconnects_is_cancelled(strict_server: tuple[Server, dict[str, str]]) -> None:
    server, secrets = strict_server
    with server.client() as client:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/translate", json=SLOW | {"api_key": secrets["any"]}, timeout=0.3)
        wait_until_idle(server, client)
        assert any(" 499 " in line for line in server.log)


def test_a_busy_server_refuses_requests_at_once_and_recovers(strict_server: tuple[Server, dict[str, str]]) -> None:
    server, secrets = strict_server

    def translate(client: httpx.Client, body: dict[str, Any]) -> tuple[int, str | None]:
        answer = client.post("/translate", json=body | {"api_key": secrets["any"]})
        return answer.status_code, answer.headers.get("retry-after")

    with ThreadPoolExecutor(3) as pool, server.client() as client:
        slow = [pool.submit(translate, client, SLOW) for _ in range(3)]
        end = monotonic() + DEADLINE
        while metric(client, "requests_running") < len(slow) and monotonic() < end:
            sleep(0.01)
        refused = []  # while the three are running: after that, a request is answered again
        while len(refused) < 10:
            answer = translate(client, SHORT)
            if any(request.done() for request in slow):
                break
            refused.append(answer)
        assert set(refused) == {(503, "1")}
        assert [request.result()[0] for request in slow] == [504] * 3
        wait_until_idle(server, client)
        assert translate(client, SHORT)[0] == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_not_read(strict_server: tuple[Server, dict[str, str]], chunked: bool) -> None:
    server, _ = strict_server
    body = b"q=" + b"a" * 100_000

    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield b"a" * 1_000

    with server.client() as client:
        answer = client.post("/translate", content=parts() if chunked else body,
                             headers={"Content-Type": "application/x-www-form-urlencoded"})  # fmt: skip
        assert (answer.status_code, list(answer.json())) == (413, ["error"])
        assert client.get("/health").status_code == 200


def test_only_pages_of_allowed_origins_may_send_requests(strict_server: tuple[Server, dict[str, str]]) -> None:
    server, secrets = strict_server
    body = SHORT | {"api_key": secrets["any"]}
    with server.client() as client:
        good, bad = {"Origin": "https://page.example"}, {"Origin": "https://evil.example"}
        answer = client.post("/translate", json=body, headers=good)
        assert answer.headers["access-control-allow-origin"] == "https://page.example"
        assert "access-control-allow-credentials" not in answer.headers
        assert client.post("/translate", json=body, headers=bad).status_code == 403
        assert "access-control-allow-origin" not in client.get("/languages", headers=bad).headers
        preflight = {"Access-Control-Request-Method": "POST"}
        assert client.options("/translate", headers=good | preflight).status_code == 204
        assert client.options("/translate", headers=bad | preflight).status_code == 403
        own = {"Origin": server.url}
        assert client.post("/translate", json=body, headers=own).status_code == 200


def test_cors_is_off_by_default(server: Server) -> None:
    with server.client() as client:
        for headers in ({"Origin": "https://page.example"}, {"Origin": "null"}):
            assert client.post("/translate", json=SHORT, headers=headers).status_code == 403
            assert not [
                name for name in client.get("/health", headers=headers).headers if name.startswith("access-")
            ]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.", "[::2]:80"])
def test_a_server_on_loopback_refuses_other_host_names(server: Server, host: str) -> None:
    with server.client() as client:
        answer = client.get("/health", headers={"Host": host})
    assert answer.status_code in (403, 400)
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    ("hosts", "version", "status"),
    [
        (["localhost", "localhost"], "1.1", 400),
        (["localhost", "evil.example"], "1.1", 400),
        (["localhost, evil.example"], "1.1", 400),
        (["localhost evil.example"], "1.1", 400),
        (["user@localhost"], "1.1", 400),
        (["localhost/path"], "1.1", 400),
        ([], "1.1", 400),
        ([], "1.0", 403),
        (["localhost"], "1.0", 200),
        (["localhost"], "1.1", 200),
    ],
)
def test_a_request_needs_one_host_header_with_one_name(
    server: Server, hosts: list[str], version: str, status: int
) -> None:
    headers = [*(f"Host: {host}" for host in hosts), "Connection: close"]
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as sock:
        sock.sendall("\r\n".join([f"GET /languages HTTP/{version}", *headers, "", ""]).encode())
        answer = b"".join(iter(lambda: sock.recv(10_000), b""))
    assert int(answer.split()[1]) == status
    assert (b'{"error"' in answer) is (status != 200)


def test_a_server_on_loopback_accepts_its_own_host_names(server: Server) -> None:
    with server.client() as client:
        for host in ("localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:5000"):
            assert client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/health", "/nowhere", "/languages", "/docs", "/spec", "/translate"])
def test_every_answer_has_the_security_headers(server: Server, path: str) -> None:
    with server.client() as client:
        headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "cache-control" in headers
    assert "server" not in headers


def test_metrics_require_their_token_and_count_requests_by_route(server: Server) -> None:
    with server.client() as client:
        client.post("/translate", json=SHORT)
        client.get("/secretpath")
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"Authorization": "Bearer see-al"}).status_code == 401
        assert metric(client, "texts_total") >= 1
        answer = client.get("/metrics", headers=METRICS)
    assert 'route="/translate"' in answer.text
    assert "secret" not in answer.text


def test_no_text_or_key_of_a_request_is_in_the_log(server: Server) -> None:
    with server.client() as client:
        client.post("/translate", params=SHORT | {"q": "secretword", "api_key": "mh-secretkey"})
        client.post("/api/inspect", json={"model": "de-en", "q": "secretword " * 300, "target": "secretword"})
        client.get("/secretpath/secretword")
        client.post("/translate", content=b"{secretword", headers={"Content-Type": "application/json"})
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(b"secretword secretword\r\n\r\n")
        assert b"400" in sock.recv(1_000)
    assert "POST /translate 200" in server.text
    assert "secret" not in server.text


def test_slow_clients_do_not_block_other_requests(server: Server) -> None:
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    for number, sock in enumerate(slow):
        sock.sendall(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
            + (b"Content-Length: 50\r\n\r\nq=" if number % 2 else b"")
        )
    with server.client() as client:
        start = monotonic()
        assert client.post("/translate", json=SHORT).status_code == 200
        assert monotonic() - start < DEADLINE
        assert metric(client, "requests_running") == 0
    for sock in slow:
        sock.close()
