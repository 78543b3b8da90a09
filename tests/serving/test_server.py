"""A server starts or fails with a reason, reports its health, and ends without dropping requests."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from textwrap import dedent
from time import monotonic, sleep

import httpx
import pytest
from safetensors.torch import load_file, save_file
from tests.serving.process import GERMAN, TIMEOUT, Server, metric, serving

from manyheads.cli.main import run
from manyheads.errors import UsageError
from manyheads.serving.server import _DRAIN_SECONDS
from manyheads.serving.settings import ServeSettings


@pytest.mark.slow
def test_a_second_signal_ends_the_server_at_once(endless_run: Path) -> None:
    token = {"MANYHEADS_METRICS_TOKEN": "see-all"}
    with (
        serving(endless_run, environment=token) as server,
        server.client() as client,
        ThreadPoolExecutor(1) as pool,
    ):
        body = {"q": ["a b. C d. E f. G h."] * 60, "source": "en", "target": "ko"}
        long = pool.submit(httpx.post, f"{server.url}/translate", json=body, timeout=60, trust_env=False)
        while not metric(client, "requests_running"):
            sleep(0.01)
        server.process.send_signal(signal.SIGINT)
        while client.get("/health").status_code == 200:
            sleep(0.01)
        assert not long.done()
        start = monotonic()
        server.process.send_signal(signal.SIGINT)
        server.process.wait(30)
        assert monotonic() - start < _DRAIN_SECONDS / 2
        with pytest.raises((httpx.HTTPError, AssertionError)):
            assert long.result(10).status_code == 200


def test_without_the_c_code_torch_translates_what_is_asked_at_the_same_time_in_float32(
    server: Server, translator_run: Path
) -> None:
    def translate(where: Server, text: str) -> str:
        body = {"q": text, "source": "de", "target": "en"}
        answer = httpx.post(f"{where.url}/translate", json=body, timeout=TIMEOUT, trust_env=False)
        assert answer.status_code == 200, answer.text
        translated: str = answer.json()["translatedText"]
        return translated

    texts = [*GERMAN, " ".join(GERMAN)]
    with (
        serving(translator_run, "--precision", "int8", environment={"MANYHEADS_NATIVE": "0"}) as without,
        ThreadPoolExecutor(8) as pool,
    ):
        assert "there is no C code (MANYHEADS_NATIVE=0): translating in float32\n" in without.text
        assert [*pool.map(partial(translate, without), texts)] == [*pool.map(partial(translate, server), texts)]


@pytest.fixture(scope="module")
def starting_server(
    translator_run: Path, endless_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Path, list[int]]]:
    """Start a server; yield it with its copy of a run and the statuses of /health up to the first 200."""
    copy = shutil.copytree(translator_run, tmp_path_factory.mktemp("copies") / "copy")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = {"MANYHEADS_METRICS_TOKEN": "see-all"}
    server, statuses = Server(["--port", str(port), str(copy), str(endless_run)], token), list[int]()
    try:
        while not statuses or statuses[-1] != 200:
            assert server.process.poll() is None
            try:
                statuses.append(httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code)
            except httpx.TransportError:
                sleep(0.01)
        server.wait_until_ready()
        yield server, copy, statuses
        assert server.end() == 0
    finally:
        server.close()


def test_health_is_not_ok_before_the_models_are_loaded(starting_server: tuple[Server, Path, list[int]]) -> None:
    _, _, statuses = starting_server
    assert statuses[0] == 503
    assert set(statuses) == {503, 200}


def test_a_loaded_model_is_served_after_its_files_are_removed(
    starting_server: tuple[Server, Path, list[int]],
) -> None:
    server, copy, _ = starting_server
    with server.client() as client:
        body = {"q": GERMAN[0], "source": "de", "target": "en"}
        before = client.post("/translate", json=body).json()
        (copy / "model.safetensors").write_bytes(b"something else")
        shutil.rmtree(copy)
        assert client.post("/translate", json=body).json() == before


def test_sigterm_lets_requests_end_and_refuses_new_ones(starting_server: tuple[Server, Path, list[int]]) -> None:
    """The last test of this server."""
    server, _, _ = starting_server
    with server.client() as client, ThreadPoolExecutor(1) as pool:
        body = {"q": "a b c", "source": "en", "target": "ko"}
        client.get("/health")  # this connection stays open
        long = pool.submit(
            httpx.post, f"{server.url}/translate", json=body | {"q": ["a b. C d."] * 4}, timeout=60, trust_env=False
        )
        while not metric(client, "requests_running"):
            sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        while client.get("/health").status_code == 200:
            sleep(0.01)
        refused = client.post("/translate", json=body)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert client.get("/health").status_code == 503
        answer = long.result(60)
        assert answer.status_code == 200
        assert len(answer.json()["translatedText"]) == 4
        start = monotonic()
        assert server.process.wait(30) == 0
        assert monotonic() - start < _DRAIN_SECONDS / 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
def test_sighup_takes_the_runs_anew_without_losing_a_request(translator_run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(translator_run, tmp_path / "other")
    weights = load_file(other / "model.safetensors")
    save_file({name: -tensor for name, tensor in weights.items()}, other / "model.safetensors")
    link = tmp_path / "current"
    link.symlink_to(translator_run)
    body = {"q": GERMAN[0], "source": "de", "target": "en"}
    with serving(link) as server, server.client() as client, ThreadPoolExecutor(4) as pool:
        ended, before = threading.Event(), client.post("/translate", json=body).json()

        def ask() -> list[httpx.Response]:
            with server.client() as own:
                return [own.post("/translate", json=body) for _ in iter(ended.is_set, True)]

        def reload(run: Path, sign: str) -> None:
            lines = server.text.count(sign)
            link.unlink()
            link.symlink_to(run)
            server.process.send_signal(signal.SIGHUP)
            while server.text.count(sign) == lines:
                assert server.process.poll() is None
                sleep(0.01)

        clients = [pool.submit(ask) for _ in range(4)]
        try:
            reload(other, "ready:")
            after = client.post("/translate", json=body).json()
            reload(tmp_path / "nothing", "the models stay")
            assert client.post("/translate", json=body).json() == after
            reload(translator_run, "ready:")
            assert client.post("/translate", json=body).json() == before
        finally:
            ended.set()
        answers = [answer for client in clients for answer in client.result(60)]
        assert {answer.status_code for answer in answers} == {200}
        assert {answer.text for answer in answers} == {json.dumps(document) for document in (before, after)}
        assert before != after
        assert server.end() == 0


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.mark.parametrize(
    ("command", "code", "messages"),
    [
        (
            "{run} --port {port}",
            2,
            ["--port {port} is taken by another program. Choose another port, such as --port {next}"],
        ),
        ("{folder}/nothing --port 0", 3, ["is not a directory"]),
        ("{run} --host 0.0.0.0", 2, ["manyheads serve keys add", "--public"]),
        ("{run} --host 203.0.113.7 --public --port 0", 2, ["cannot be had"]),
        ("{run} --keys {folder}/keys.json", 3, ["manyheads serve keys add"]),
        ("{folder}/damaged --port 0", 3, ["model.safetensors is damaged"]),
        ("{run} {run} --port 0", 2, ["de-en, and so does a run before it"]),
    ],
)
def test_a_server_that_cannot_start_says_why(
    command: str, code: int, messages: list[str], translator_run: Path, taken_port: int, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    damaged = shutil.copytree(translator_run, tmp_path / "damaged") / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    values = {"run": translator_run, "folder": tmp_path, "port": taken_port, "next": taken_port + 1}
    assert run(["serve", *command.format(**values).split()]) == code
    error = capsys.readouterr().err
    assert all(message.format(**values) in error for message in messages)
    assert "Traceback" not in error


def test_a_public_server_names_its_limits_and_keeps_an_idle_connection_as_long_as_it_is_told(
    translator_run: Path,
) -> None:
    options = ("--host", "0.0.0.0", "--public", "--queue", 7, "--char-limit", 2_003, "--keep-alive", 1)
    with serving(translator_run, *options) as server:
        assert (
            "limits: 120 requests a minute and address (--req-limit), 7 at once (--queue); a request of 30 s "
            "(--timeout), 1,048,576 bytes (--body-limit) and 64 texts (--batch-limit), each of 2,003 characters "
            "(--char-limit)\n"
        ) in server.text
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            start = monotonic()
            assert b" 200 " in b"".join(iter(lambda: sock.recv(10_000), b""))  # up to the end of the connection
            assert monotonic() - start < 15
        assert server.end() == 0


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        (ServeSettings(trust_forwarded_for=True), "limits: 120 requests a minute and address (--req-limit), "),
        (
            ServeSettings(host="::", keys=Path("keys.json"), req_limit=2_000),
            "limits: 2,000 requests a minute and key ",
        ),
        (
            ServeSettings(host="::", public=True, req_limit=0),
            "limits: any number of requests a minute and address ",
        ),
    ],
)
def test_the_limits_of_a_server_that_others_reach_are_those_that_hold(settings: ServeSettings, limits: str) -> None:
    assert settings.has_other_clients
    assert settings.describe_limits().startswith(limits)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of open files")
def test_a_server_may_open_a_file_for_each_connection() -> None:
    program = """
        import resource
        from manyheads.serving.server import _allow_connections
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
        _allow_connections()
        print(*resource.getrlimit(resource.RLIMIT_NOFILE), hard, resource.RLIM_INFINITY)
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], check=True, capture_output=True, text=True)
    soft, hard, hard_before, infinite = map(int, done.stdout.split())
    assert soft == (1_200 if hard == infinite else min(1_200, hard))
    assert hard == hard_before


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_only_a_loopback_host_needs_no_key(host: str) -> None:
    with pytest.raises(UsageError, match="--public"):
        ServeSettings(host=host)
    ServeSettings(host=host, public=True)
    ServeSettings(host=host, keys=Path("keys.json"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_hosts_are_recognized(host: str) -> None:
    assert ServeSettings(host=host).is_loopback
    assert ServeSettings(host=host).requests_a_minute == 0
    assert ServeSettings(host=host, trust_forwarded_for=True).requests_a_minute == 120
