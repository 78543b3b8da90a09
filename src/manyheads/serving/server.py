"""Listening, warming up, ending.

The address is taken first, so that a taken port is told at once; /health answers from then on, with 200 when all
models have been loaded and used. SIGTERM and Ctrl-C let what runs come to its end, and refuse what is new.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import uvicorn

from manyheads.errors import UsageError
from manyheads.serving.access import Access
from manyheads.serving.app import make_app
from manyheads.serving.connections import Connection
from manyheads.serving.models import check_runs, load_models, make_batcher
from manyheads.serving.service import Service
from manyheads.serving.settings import ServeSettings
from manyheads.serving.work import Work
from manyheads.training.memory import keep_decoding_small

__all__ = ["event_loop", "serve"]

DRAIN_SECONDS = 25.0  # for what runs when the end is asked for; then it is given up
KEEP_ALIVE = 15  # seconds that an idle connection stays open
BACKLOG = 512
SIGNALS = (signal.SIGINT, signal.SIGTERM)
SWITCH_INTERVAL = 0.001  # seconds that a thread may hold the interpreter while another one waits for it


def serve(runs: Sequence[Path], settings: ServeSettings, log: Callable[[str], None]) -> None:
    """Serve runs until a signal says to end.

    Args:
        runs: run directories, or with CTranslate2 also exported folders.
        settings: how.
        log: writes a line for the operator; called from any thread.

    Raises:
        UsageError: the address cannot be had, or two runs do the same.
        RunError: a run cannot be opened.
        DataError: the file of keys cannot be read.
    """
    check_runs(runs, settings.engine)
    access = Access(settings)
    keep_decoding_small()
    with listening(settings) as sock, switching(SWITCH_INTERVAL):
        batcher = make_batcher(settings)
        service = Service(settings, batcher, Work(settings.queue, settings.timeout, batcher), access, log)
        server = Server(service, runs, address(settings, sock))
        logging.getLogger("uvicorn.error").disabled = True  # its messages may quote what clients sent
        with asyncio.Runner(loop_factory=event_loop()) as runner:
            runner.run(server.serve(sockets=[sock]))
        service.work.stop_all()
        batcher.close(5.0)
        service.work.pool.shutdown(wait=False, cancel_futures=True)
        if server.failure is not None:
            raise server.failure


class Server(uvicorn.Server):
    """uvicorn's server, which loads the models while it listens, and ends as this module says.

    Attributes:
        failure: why it ended, if not because it was asked to.
    """

    def __init__(self, service: Service, runs: Sequence[Path], address: str) -> None:
        config = uvicorn.Config(
            make_app(service),
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=5,
        )
        super().__init__(config)
        self.service = service
        self.runs = runs
        self.address = address
        self.failure: Exception | None = None
        self.asked_at = 0.0
        threading.Thread(target=self.load, name="manyheads-loading", daemon=True).start()

    def load(self) -> None:
        """Open the models in a thread of its own; what goes wrong ends the server."""
        service = self.service
        try:
            service.models = load_models(self.runs, service.settings, service.batcher, service.log)
        except Exception as error:
            if not service.work.draining:
                self.failure = error
                self.should_exit = True
            return
        keep_from_collector()
        service.ready = True
        pairs = [f"{source}-{target}" for source, target in service.models.translators]
        names = [*pairs, *service.models.classifiers, *service.models.generators]
        service.log(f"ready: {', '.join(names)} at {self.address}")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Heed signals meanwhile."""
        before = {one: signal.signal(one, self.handle_exit) for one in SIGNALS}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal asks for the end, the second one insists."""
        if self.service.work.draining:
            self.force_exit = self.should_exit = True
        self.service.work.draining = True
        self.asked_at = monotonic()

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether it is time to end."""
        work = self.service.work
        if work.draining and not self.should_exit:
            late = monotonic() - self.asked_at > DRAIN_SECONDS
            if late:
                work.stop_all()
            self.should_exit = late or not work.running
        return await super().on_tick(counter)


def event_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Makes uvloop's event loop, where there is one; else asyncio makes its own.

    Whenever asyncio reads or writes, it gives up the interpreter, and where others decode it waits up to a switch
    interval to get it back. uvloop does so far less often.
    """
    try:
        import uvloop
    except ImportError:  # not for Windows
        return None
    return uvloop.new_event_loop


def keep_from_collector() -> None:
    """Exempt what exists now from garbage collection: to look through it all stops every thread for 0.2 seconds."""
    gc.collect()
    gc.freeze()


@contextmanager
def switching(seconds: float) -> Iterator[None]:
    """While open, threads take turns this often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def listening(settings: ServeSettings) -> Iterator[socket.socket]:
    """The socket of the address.

    Raises:
        UsageError: it cannot be had.
    """
    where = f"--host {settings.host} --port {settings.port}"
    try:
        found: list[Any] = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, place = found[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"{where} is no address of this machine: {error.strerror}.") from error
    with sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(place)
            sock.listen(BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise UsageError(
                    f"{where} is taken by another program. Choose another port, such as --port {settings.port + 1}."
                ) from error
            raise UsageError(f"{where} cannot be had: {error.strerror}.") from error
        sock.setblocking(False)
        yield sock


def address(settings: ServeSettings, sock: socket.socket) -> str:
    """Where a browser finds the server."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{sock.getsockname()[1]}"
