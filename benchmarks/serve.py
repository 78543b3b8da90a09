"""Put load on a server; measure its throughput, latency and memory. Both run on this machine and share its cores.

    python benchmarks/serve.py RUN --lines FILE [--seconds 60] [--requests 100000] [--engine torch]

    offline     sentences/s of `Translator.translate` of all lines at once, before the server starts
    closed      several clients, each with one request at a time: sentences/s, also as a share of offline; number
                of cores that the server used
    half load   requests of one sentence at random moments, half as many as the server can answer: latencies
    overload    3 and 10 times as many as it can answer: numbers and latencies of accepted and of refused requests,
                memory; seconds until a request takes at most twice as long as on an idle server
    memory      resident memory before, during and after --requests requests
Latencies are in ms, from sending a request to its whole answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, sleep
from typing import IO

import psutil
from uvicorn.loops.auto import auto_loop_factory

from bitext.lines import read_lines
from harness import Document, in_turn, main, option, spread
from manyheads import Translator
from manyheads.search.options import SearchOptions
from material import RUN, named

HEAD = (
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)
SIZE = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
PASSES = 5  # over all lines, so that beginning and end, with few requests in flight, count little


@dataclass(frozen=True)
class Answer:
    status: int
    seconds: float


class Server:
    """A server process with some options, whose standard error is the file `log`."""

    def __init__(self, run: Path, options: Sequence[str], log: IO[bytes]) -> None:
        command = [sys.executable, "-m", "manyheads", "serve", str(run), "--port", "0", *options]
        self.process = psutil.Popen(command, stderr=log)
        while (match := re.search(r"ready: .*:(\d+)\n", Path(log.name).read_text(encoding="utf-8"))) is None:
            if self.process.poll() is not None:
                sys.exit("the server did not start")
            sleep(0.1)
        self.port = int(match[1])

    @property
    def computed(self) -> float:
        times = self.process.cpu_times()
        return times.user + times.system

    @property
    def resident(self) -> float:
        return round(self.process.memory_info().rss / 2**20, 1)


@contextmanager
def serving(run: Path, *options: str) -> Iterator[Server]:
    with tempfile.NamedTemporaryFile() as log:
        server = Server(run, options, log)
        try:
            yield server
        finally:
            server.process.terminate()
            server.process.wait()


class Connection(asyncio.Protocol):
    """A connection to a server, for one request at a time.

    Attributes:
        last_used: time of the last request or response.
    """

    def __init__(self, idle: list[Connection]) -> None:
        """Open the connection; it joins `idle` after each response."""
        self.idle = idle
        self.buffer = b""
        self.last_used = perf_counter()
        self.answer: asyncio.Future[Answer] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def send(self, request: bytes, sent: float) -> asyncio.Future[Answer]:
        self.last_used, self.answer = sent, asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.answer

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        size = SIZE.search(head)
        if not end or (size is not None and len(body) < int(size[1])):
            return
        self.buffer = b""
        self.finish(int(head[9:12]))
        self.idle.append(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self in self.idle:
            self.idle.remove(self)
        self.finish(0)

    def finish(self, status: int) -> None:
        """Handle a response, or the end of the connection."""
        now = perf_counter()
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(Answer(status, now - self.last_used))
        self.last_used = now


class ConnectionPool:
    def __init__(self, server: Server, pair: tuple[str, str]) -> None:
        self.server = server
        self.pair = pair
        self.idle: list[Connection] = []

    def translate(self, texts: Sequence[str]) -> Awaitable[Answer]:
        """Send one request: a single text, or a list."""
        source, target = self.pair
        body = json.dumps({"q": texts[0] if len(texts) == 1 else texts, "source": source, "target": target})
        request = HEAD % len(body.encode()) + body.encode()
        now = perf_counter()
        while self.idle:
            connection = self.idle.pop()
            if now - connection.last_used < 5:  # the server closes those that are idle for 15 seconds
                return connection.send(request, now)
            connection.transport.close()
        return asyncio.ensure_future(self.translate_on_new_connection(request, now))

    async def translate_on_new_connection(self, request: bytes, sent: float) -> Answer:
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(self.idle), "127.0.0.1", self.server.port
            )
        except OSError:
            return Answer(0, perf_counter() - sent)
        return await connection.send(request, sent)

    async def closed_loop(
        self, lines: Sequence[str], clients: int, texts: int, requests: Iterable[int]
    ) -> list[Answer]:
        """Let clients send one request after the other, all at the same time, each of so many texts.

        Args:
            lines: texts to send.
            clients: number of clients.
            texts: number of texts of a request.
            requests: numbers of the requests; the last one ends the loop.
        """
        numbers = iter(requests)
        answers: list[Answer] = []

        async def client() -> None:
            for number in numbers:
                start = number * texts % max(1, len(lines) - texts)
                answers.append(await self.translate(lines[start : start + texts]))

        await asyncio.gather(*(client() for _ in range(clients)))
        return answers

    async def open_loop(self, lines: Sequence[str], rate: float, seconds: float) -> list[Answer]:
        """Send requests of one line at random moments (Poisson), without waiting for answers (open loop)."""
        rng, answers = random.Random(1), list[Awaitable[Answer]]()
        start = due = perf_counter()
        while due < start + seconds:
            due += rng.expovariate(rate)
            await asyncio.sleep(max(0.0, due - perf_counter()))
            answers.append(self.translate([rng.choice(lines)]))
        return list(await asyncio.gather(*answers))

    def close(self) -> None:
        for connection in self.idle.copy():
            connection.transport.close()


def quantiles(answers: Sequence[Answer]) -> dict[str, float]:
    times = sorted(1000 * answer.seconds for answer in answers)
    if not times:
        return {}
    return {
        "p50": round(statistics.median(times), 1),
        "p99": round(times[min(len(times) - 1, int(0.99 * len(times)))], 1),
        "most": round(times[-1], 1),
    }


def measure_offline(arguments: argparse.Namespace, lines: Sequence[str], translator: Translator) -> Document:
    options = SearchOptions(split="sentences", token_scores=False)
    translator.translate(lines[:200], options=options)
    side = {"offline": partial(translator.translate, lines, options=options)}
    (seconds,) = in_turn(side, arguments.rounds, warm_up=0).values()
    speeds = spread([len(lines) / value for value in seconds], digits=1)
    return {**speeds, "sentences": len(lines), "beam": translator.config.search.beam_size}


async def measure_closed(clients: ConnectionPool, lines: Sequence[str], offline: float) -> list[Document]:
    rows = []
    for count, texts in ((32, 1), (60, 1), (8, 16), (4, 50)):
        requests = max(count * 2, PASSES * len(lines) // texts)
        await clients.closed_loop(lines, count, texts, range(count))
        start, computed = perf_counter(), clients.server.computed
        answers = await clients.closed_loop(lines, count, texts, range(requests))
        seconds, computed = perf_counter() - start, clients.server.computed - computed
        speed = sum(answer.status == 200 for answer in answers) * texts / seconds
        rows.append(
            {
                "clients": count,
                "texts": texts,
                "sentences/s": round(speed, 1),
                "of_offline": round(speed / offline, 3),
                "latency": quantiles(answers),
                "cores_of_server": round(computed / seconds, 2),
            }
        )
        print("closed", rows[-1])
    return rows


async def measure_overload(
    clients: ConnectionPool, lines: Sequence[str], rate: float, factor: int, seconds: float
) -> Document:
    """Send `factor` times as many requests as the server can answer, then wait for its recovery."""
    idle = await clients.closed_loop(lines, 1, 1, range(30))
    idle_seconds, before = statistics.median(answer.seconds for answer in idle), clients.server.resident
    answers = await clients.open_loop(lines, factor * rate, seconds)
    answered = [answer for answer in answers if answer.status == 200]
    refused = [answer for answer in answers if answer.status in (429, 503)]
    memory = [before, clients.server.resident]
    start = perf_counter()
    while (await clients.translate([lines[0]])).seconds > 2 * idle_seconds and perf_counter() - start < 60:
        pass
    row = {
        "factor": factor,
        "seconds": seconds,
        "asked": len(answers),
        "accepted": len(answered),
        "refused": len(refused),
        "others": len(answers) - len(answered) - len(refused),
        "accepted_per_second": round(len(answered) / seconds, 1),
        "accepted_latency": quantiles(answered),
        "refused_latency": quantiles(refused),
        "memory_mib": memory,
        "recovery_seconds": round(perf_counter() - start, 3),
        "idle_ms": round(1000 * idle_seconds, 1),
    }
    print("overload", row)
    return row


async def measure_memory(clients: ConnectionPool, lines: Sequence[str], requests: int) -> Document:
    await clients.closed_loop(lines, 32, 1, range(min(2_000, requests // 10)))
    sizes = [clients.server.resident]
    for _ in range(10):
        await clients.closed_loop(lines, 32, 1, range(requests // 10))
        sizes.append(clients.server.resident)
    return {"requests": requests, "mib": sizes, "growth_percent": round(100 * (sizes[-1] / sizes[0] - 1), 2)}


async def measure_server(clients: ConnectionPool, lines: list[str], offline: float, seconds: float) -> Document:
    rows = await measure_closed(clients, lines, offline)
    capacity = max(row["sentences/s"] for row in rows if row["texts"] == 1)
    answers = await clients.open_loop(lines, capacity / 2, min(30.0, seconds))
    half_load = {
        "requests_per_second": round(capacity / 2, 1),
        "answered": sum(answer.status == 200 for answer in answers),
        "asked": len(answers),
        "latency": quantiles(answers),
    }
    overload = [await measure_overload(clients, lines, capacity, factor, seconds) for factor in (3, 10)]
    return {"closed": rows, "half load": half_load, "overload": overload}


def measure(arguments: argparse.Namespace) -> Document:
    lines = list(islice(read_lines(arguments.lines), arguments.most))
    translator = Translator.load(arguments.run, engine=arguments.engine)
    offline = measure_offline(arguments, lines, translator)
    document = {"run": arguments.run.name, "engine": arguments.engine, "offline": offline}
    with (
        serving(arguments.run, "--engine", arguments.engine) as server,
        asyncio.Runner(loop_factory=auto_loop_factory()) as runner,
    ):
        clients = ConnectionPool(server, (translator.config.data.source, translator.config.data.target))
        document |= runner.run(measure_server(clients, lines, offline["median"], arguments.seconds))
        if arguments.requests:
            document["memory"] = runner.run(measure_memory(clients, lines, arguments.requests))
        clients.close()
    return document


OPTIONS = {
    "run": RUN,
    "--lines": option(Path, "sentences of the source language, one a line", tiny=named("test.de"), required=True),
    "--most": option(1_000, "largest number of lines to use", tiny=5),
    "--rounds": option(3, "rounds of the offline measurement", tiny=1),
    "--seconds": option(60.0, "seconds of an overload", tiny=0.2),
    "--requests": option(100_000, "requests of the memory measurement; 0 skips it", tiny=100),
    "--engine": option("auto", "engine of the server and offline"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="sentences/s")
