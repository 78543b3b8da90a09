"""Start, warm-up and shutdown of the server.

The socket is bound before the models are loaded, so that a taken port is reported at once; /health answers from
then on, with 200 when all models have been loaded and used. SIGHUP opens the runs again: running requests finish
with the old models, later ones get the new. SIGTERM and Ctrl-C let running requests finish and refuse new ones.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from types import FrameType

import uvicorn

from manyheads.allocator import keep_decoding_small, return_freed_memory
from manyheads.checkpoint import RunDirectory
from manyheads.data.suggestions import SuggestionFile
from manyheads.errors import UsageError
from manyheads.serving.access import Access
from manyheads.serving.app import App
from manyheads.serving.connections import MAX_CONNECTIONS, Connection
from manyheads.serving.models import load_models, make_batcher
from manyheads.serving.request_pool import RequestPool
from manyheads.serving.service import Service
from manyheads.serving.settings import ServeSettings

_DRAIN_SECONDS = 25.0  # for running requests to finish after a signal, before they are cancelled
_OTHER_FILES = 200  # open files of the server beside its connections
_BACKLOG = 512  # connections that the system queues before they are accepted
_SWITCH_INTERVAL = 0.001  # seconds that a thread may hold the interpreter lock while another one waits for it


def serve(runs: Sequence[Path], settings: ServeSettings, log: Callable[[str], None]) -> None:
    """Serve runs until a signal ends the server.

    Args:
        runs: run directories.
        settings: address, limits and options of the computation.
        log: writes a line for the operator; called from any thread.

    Raises:
        UsageError: the address cannot be used, or two runs have the same language pair or name.
        RunError: a run cannot be opened.
        DataError: the file of keys cannot be read, or that of suggestions cannot be written.
    """
    for run in runs:
        RunDirectory.existing(run)
    access = Access(settings)
    suggestions = SuggestionFile(settings.suggestions) if settings.suggestions else None
    if suggestions is not None:
        suggestions.check()
    keep_decoding_small()
    return_freed_memory()
    _allow_connections()
    with _bound_socket(settings) as sock:
        if settings.has_other_clients:
            log(settings.describe_limits())
        sys.setswitchinterval(_SWITCH_INTERVAL)
        batcher = make_batcher(settings)
        requests = RequestPool(settings.queue, settings.timeout, batcher)
        service = Service(settings, batcher, requests, access, log, suggestions=suggestions)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        server = _Server(service, runs, f"http://{host}:{sock.getsockname()[1]}")  # the port that was really bound
        logging.getLogger("uvicorn.error").disabled = True  # its messages may quote what clients sent
        server.run(sockets=[sock])
        requests.cancel_all()
        batcher.close(5.0)
        requests.threads.shutdown(wait=False, cancel_futures=True)
        if server.failure is not None:
            raise server.failure


class _Server(uvicorn.Server):
    """uvicorn's server, which loads the models while it listens and drains running requests at the end.

    uvicorn's own shutdown closes the listening socket at the first signal, so that waiting clients see a broken
    connection; this one answers them with status 503 until the running requests have finished.

    uvicorn takes uvloop's event loop where it is installed. asyncio releases the interpreter lock at each read or
    write, and while other threads decode it waits up to a switch interval to get it back; uvloop releases it far
    less often.

    Attributes:
        failure: the error that ended the server while it loaded the models, or None.
        signalled_at: monotonic time of the first signal that ends the server, in seconds.
        reload_wanted: whether SIGHUP has come since the models were loaded.
    """

    def __init__(self, service: Service, runs: Sequence[Path], url: str) -> None:
        config = uvicorn.Config(
            App(service),
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_keep_alive=service.settings.keep_alive,
            timeout_graceful_shutdown=5,
        )
        super().__init__(config)
        self.service = service
        self.runs = runs
        self.url = url
        self.failure: Exception | None = None
        self.signalled_at = 0.0
        self.reload_wanted = False
        self.terminal = os.isatty(2)
        if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGHUP, self.handle_hangup)
        self.loader = self.start_loading()

    def start_loading(self) -> threading.Thread:
        """Load the models in a new thread, and return it."""
        self.reload_wanted = False
        loader = threading.Thread(target=self.load, name="manyheads-loading", daemon=True)
        loader.start()
        return loader

    def load(self) -> None:
        """Load the models; an error ends the server, unless it serves models already, which then stay."""
        service = self.service
        try:
            models = load_models(self.runs, service.settings, service.batcher, service.log)
        except Exception as error:
            if service.ready:
                service.log(f"the runs were not opened again, and the models stay: {error}")
            elif not service.requests.draining:
                self.failure = error
                self.should_exit = True
            return
        service.models = models
        gc.unfreeze()  # the models before
        gc.collect()
        gc.freeze()  # a full pass over all present objects would stop every thread for 0.2 seconds
        service.ready = True
        pairs = [f"{source}-{target}" for source, target in service.models.translators]
        names = [*pairs, *service.models.classifiers, *service.models.generators]
        service.log(f"ready: {', '.join(names)} at {self.url}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Refuse new requests at the first SIGINT or SIGTERM; stop at once at the second."""
        if self.service.requests.draining:
            self.force_exit = self.should_exit = True
        self.service.requests.draining = True
        self.signalled_at = monotonic()

    def handle_hangup(self, sig: int, frame: FrameType | None) -> None:
        """Open the runs again at SIGHUP; end the server if it came because its terminal was closed."""
        self.reload_wanted = True
        if self.terminal and not os.isatty(2):
            self.handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether the server should stop; called ten times a second."""
        requests = self.service.requests
        if self.reload_wanted and not self.loader.is_alive():
            self.loader = self.start_loading()
        if requests.draining and not self.should_exit:
            late = monotonic() - self.signalled_at > _DRAIN_SECONDS
            if late:
                requests.cancel_all()
            self.should_exit = late or not requests.running
        return await super().on_tick(counter)


def _allow_connections() -> None:
    """Raise the limit of open files, a file for each connection, where it is lower (256 on macOS)."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MAX_CONNECTIONS + _OTHER_FILES
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _bound_socket(settings: ServeSettings) -> socket.socket:
    """Open a listening socket at the configured address.

    Raises:
        UsageError: the address is not of this machine, or cannot be used.
    """
    where = f"--host {settings.host} --port {settings.port}"
    try:
        (family, *_), *_ = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise UsageError(f"{where} is no address of this machine: {error.strerror}.") from error
    dual_stack = family == socket.AF_INET6 and socket.has_dualstack_ipv6()  # "::" also takes clients by IPv4
    try:
        sock = socket.create_server(
            (settings.host, settings.port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual_stack
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"{where} is taken by another program. Choose another port, such as --port {settings.port + 1}."
            ) from error
        raise UsageError(f"{where} cannot be had: {os.strerror(error.errno or 0)}.") from error
    sock.setblocking(False)
    return sock
