"""Connections have time limits and a maximum number, and invalid requests are refused."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manyheads.serving import connections
from manyheads.serving.connections import Connection

HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"
pytestmark = pytest.mark.anyio
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
TIMEOUT = 10  # seconds, on a busy machine too; half of REQUEST_ARRIVAL_SECONDS


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def listening(release: asyncio.Event | None = None) -> AsyncIterator[Callable[..., Awaitable[Stream]]]:
    """Serve an application that takes 0.3 seconds per request, or until its release, through our connections."""

    async def slow(request: Request) -> Response:
        body = await request.body()
        await (release.wait() if release else asyncio.sleep(0.3))
        return Response(body, headers={"got": " ".join(request.headers)})

    async def long(request: Request) -> Response:
        return Response(b"a" * 2**26)  # more than the buffers of the system hold

    app = Starlette(routes=[Route("/x", slow, methods=["POST"]), Route("/long", long)])
    config = uvicorn.Config(app, http=Connection, ws="none", lifespan="off", log_config=None, timeout_keep_alive=5)
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    loop = asyncio.get_running_loop()
    sockets = await loop.create_server(
        lambda: Connection(config=config, server_state=server.server_state, app_state={}, _loop=loop),
        "127.0.0.1",
        0,
    )
    port = sockets.sockets[0].getsockname()[1]
    try:
        yield partial(asyncio.open_connection, "127.0.0.1", port)
    finally:
        sockets.close()


async def closed_after(stream: Stream) -> float:
    start = monotonic()
    with suppress(ConnectionError):
        assert await asyncio.wait_for(stream[0].read(), TIMEOUT) == b""
    stream[1].close()
    return monotonic() - start


async def answer(stream: Stream, sent: bytes = HEAD + b"abcd") -> bytes:
    """Return the answer to a request, whose end is the body of the request."""
    stream[1].write(sent)
    return await asyncio.wait_for(stream[0].readuntil(b"abcd"), TIMEOUT)


@pytest.mark.parametrize("sent", [b"", b"POST", HEAD, HEAD + b"abc"])
async def test_a_connection_that_does_not_send_its_request_is_closed(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_REQUEST_ARRIVAL_SECONDS", 0.2)
    async with listening() as connect:
        stream = await connect()
        stream[1].write(sent)
        assert await closed_after(stream) > 0.15


async def test_a_connection_that_has_sent_its_request_may_wait_and_send_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_REQUEST_ARRIVAL_SECONDS", 0.2)
    async with listening() as connect:
        stream = await connect()
        for _ in range(2):
            assert (await answer(stream)).startswith(b"HTTP/1.1 200")
            await asyncio.sleep(0.25)  # idle between two requests
        stream[1].write(b"POST")
        assert await closed_after(stream) > 0.15


LONG = b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"POST", HEAD + b"abc", LONG], ids=["nothing", "head", "body", "unread"])
async def test_connections_that_wait_for_their_client_do_not_keep_others_out(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open as many connections as the maximum, each of which makes the server wait, and one more."""
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 2)
    async with listening() as connect:
        streams = []
        for _ in range(2):
            streams.append(await connect())
            streams[-1][1].write(sent)
            await asyncio.sleep(0.2)
        newest = await connect()
        assert b" 200 " in await answer(newest)
        with suppress(ConnectionError):
            assert len(await asyncio.wait_for(streams[0][0].read(), TIMEOUT)) < 2**26
        for _, writer in (*streams, newest):
            writer.transport.abort()


async def test_an_idle_connection_is_closed_before_one_that_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 2)
    release = asyncio.Event()
    async with listening(release) as connect:
        first, idle = await connect(), await connect()
        answers = [asyncio.create_task(answer(first))]
        await asyncio.sleep(0.2)
        newest = await connect()
        assert await closed_after(idle) < TIMEOUT
        answers.append(asyncio.create_task(answer(newest)))
        await asyncio.sleep(0.2)
        assert await closed_after(await connect()) < TIMEOUT  # none of the others waits for its client
        release.set()
        assert all(b" 200 " in text for text in await asyncio.gather(*answers))
        for _, writer in (first, newest):
            writer.close()


async def test_the_address_with_the_most_idle_connections_loses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    async with listening() as connect:
        try:
            other = await connect(local_addr=("127.0.0.2", 0))
        except OSError:
            pytest.skip("this machine has one loopback address")
        oldest, *rest = [await connect() for _ in range(3)]
        assert await closed_after(oldest) < TIMEOUT
        for stream in (other, *rest):
            assert b" 200 " in await answer(stream)
            stream[1].close()


INVALID = b'{"error": "Invalid HTTP request"}'


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
        HEAD.replace(b"Content-Length: 4", b"Transfer-Encoding: chunked") + b"4\r\nabcdefgh\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * connections._MAX_HEAD_BYTES,
    ],
)
async def test_an_invalid_request_is_refused_and_the_connection_closed(sent: bytes) -> None:
    async with listening() as connect:
        reader, writer = await connect()
        writer.write(sent)
        refusal = await asyncio.wait_for(reader.read(), TIMEOUT)
        assert refusal.startswith(b"HTTP/1.1 400 ")
        assert refusal.endswith(INVALID)
        writer.close()


async def test_invalid_bytes_after_a_request_do_not_prevent_its_answer() -> None:
    async with listening() as connect:
        stream = await connect()
        assert (await answer(stream, HEAD + b"abcd" + b"nonsense\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        await closed_after(stream)


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
async def test_a_request_to_upgrade_the_protocol_is_answered_over_http_1(protocol: bytes) -> None:
    """Send the upgrade request that Java's client sends with its first request."""
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEA\r\nUpgrade: " + protocol + b"\r\n"
    async with listening() as connect:
        stream = await connect()
        for head in (HEAD.replace(b"Content-Length", upgrade + b"Content-Length"), HEAD):
            assert b" 200 " in await answer(stream, head + b"abcd")
        stream[1].close()


async def test_trailers_behind_a_body_are_ignored() -> None:
    chunked = HEAD.replace(b"Content-Length: 4", b"Transfer-Encoding: chunked")
    async with listening() as connect:
        stream = await connect()
        found = await answer(stream, chunked + b"4\r\nabcd\r\n0\r\nX-Late: y\r\n\r\n")
        assert b"got: host transfer-encoding\r\n" in found
        stream[1].close()


def test_the_server_runs_on_uvloop_and_without_it_on_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    async def loop() -> str:
        return type(asyncio.get_running_loop()).__module__

    def module() -> str:
        factory = uvicorn.Config(Starlette()).get_loop_factory()  # the same call as in `uvicorn.Server.run`
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(loop())

    assert module().startswith("uvloop")
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert module().startswith("asyncio")
