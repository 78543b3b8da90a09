"""A connection does not wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
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
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def listening() -> AsyncIterator[Callable[[], Awaitable[Stream]]]:
    """An application that takes half a second for each request, behind our connections."""

    async def slow(request: Request) -> Response:
        body = await request.body()
        await asyncio.sleep(0.5)
        return Response(body)

    app = Starlette(routes=[Route("/x", slow, methods=["POST"])])
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
        yield lambda: asyncio.open_connection("127.0.0.1", port)
    finally:
        sockets.close()


async def closed_after(stream: Stream) -> float:
    begun = monotonic()
    with suppress(ConnectionError):
        assert await asyncio.wait_for(stream[0].read(), 5) == b""
    stream[1].close()
    return monotonic() - begun


@pytest.mark.parametrize("sent", [b"", b"POST", HEAD, HEAD + b"abc"])
def test_one_that_does_not_send_its_request_is_closed(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SECONDS_TO_ARRIVE", 0.2)

    async def run() -> None:
        async with listening() as connect:
            stream = await connect()
            stream[1].write(sent)
            assert 0.15 < await closed_after(stream) < 2

    asyncio.run(run())


def test_one_that_has_sent_it_may_wait_for_the_answer_and_send_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SECONDS_TO_ARRIVE", 0.2)

    async def run() -> None:
        async with listening() as connect:
            reader, writer = await connect()
            for _ in range(2):
                writer.write(HEAD + b"abcd")
                answer = await asyncio.wait_for(reader.readuntil(b"abcd"), 5)
                assert answer.startswith(b"HTTP/1.1 200")
                await asyncio.sleep(0.3)  # idle between two requests
            writer.write(b"POST")
            assert 0.15 < await closed_after((reader, writer)) < 2

    asyncio.run(run())


def test_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)

    async def run() -> None:
        async with listening() as connect:
            streams = [await connect() for _ in range(3)]
            assert await closed_after(await connect()) < 1
            streams[0][1].write(HEAD + b"abcd")
            assert b"abcd" in await asyncio.wait_for(streams[0][0].readuntil(b"abcd"), 5)
            for _, writer in streams:
                writer.close()

    asyncio.run(run())
