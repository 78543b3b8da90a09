"""The signals that stop a training or make it save a checkpoint.

The first Ctrl-C, SIGTERM or SIGHUP is answered with a line at once, and training stops where nothing is lost. A
repetition within a second is the same request: `timeout` signals a process and its whole group. A later one has the
effect that it has outside of training: the program ends. SIGUSR1 saves, and training continues. A signal that is
ignored stays ignored: SIGHUP under `nohup`, Ctrl-C in a background job of a script.

Under a launcher such as `torchrun` a signal is received several times: from the terminal or the cluster, and from
the launcher, which kills processes that do not stop. There, repeated signals change nothing.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from manyheads.reports import NO_LISTENER, Listener

_STOPPING = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))
_SAVING = (signal.SIGUSR1,) if hasattr(signal, "SIGUSR1") else ()  # Windows has neither
_REPEAT = 1.0  # seconds in which a repeated signal is the same request


class Requests:
    """Requests by signals: to stop, or to save and continue.

    Attributes:
        signal: the signal that requested to stop, or None.
        answer: returns the line that answers the first request to stop.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.wants_save = False
        self.first = 0.0  # time of the first request to stop, in seconds
        self.stop_message: Callable[[], str] = lambda: "stopping; press again to abort"

    def stop(self) -> bool:
        """Return whether a signal to stop was received."""
        return self.signal is not None

    def save_now(self) -> bool:
        """Return True once for each request to save."""
        requested, self.wants_save = self.wants_save, False
        return requested

    def leave(self) -> None:
        """Exit as the signal would have, after everything is saved; another process may have received it."""
        if self.signal is signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + (self.signal or signal.SIGTERM))

    @contextmanager
    def recorded(self, listener: Listener = NO_LISTENER, *, launched: bool = False) -> Iterator[None]:
        """Record the first signal to stop and each SIGUSR1 in this context; in the main thread only.

        Args:
            listener: receives the answer to the first request to stop.
            launched: whether a launcher controls this process; then all signals are only recorded.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note_stop(number: int, frame: FrameType | None) -> None:
            if self.signal is None:
                self.signal, self.first = signal.Signals(number), time.monotonic()
                listener.interrupted(self.stop_message())
            elif launched or time.monotonic() - self.first < _REPEAT:
                return
            else:
                restore()
                signal.raise_signal(number)

        def note_save(number: int, frame: FrameType | None) -> None:
            self.wants_save = True

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        handlers = dict.fromkeys(_STOPPING, note_stop) | dict.fromkeys(_SAVING, note_save)
        # getsignal returns None for a handler that was not set from Python
        before = {number: signal.getsignal(number) or signal.SIG_DFL for number in handlers}
        for number, note in handlers.items():
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, note)
        try:
            yield
        finally:
            restore()
