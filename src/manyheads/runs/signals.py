"""Ctrl-C and SIGTERM: finish the step, save, leave; the second one leaves at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stop", "heeding_signals"]


class Stop:
    """Whether somebody asked to stop, and by which signal."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __call__(self) -> bool:
        """True once a signal has come."""
        return self.signal is not None

    def leave(self) -> None:
        """End the program as the signal would have, now that all is saved; nothing when none came."""
        if self.signal is signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is not None:
            raise SystemExit(128 + self.signal)


@contextmanager
def heeding_signals() -> Iterator[Stop]:
    """While open, the first SIGINT or SIGTERM is only noted; outside the main thread none is."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(number: int, frame: FrameType | None) -> None:
        stop.signal = signal.Signals(number)
        for each, handler in before.items():
            signal.signal(each, handler)  # the next one is not held back

    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
