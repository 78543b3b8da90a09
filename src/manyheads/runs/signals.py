"""Ctrl-C and SIGTERM finish the step, save and exit; a second one exits at once. SIGUSR1 saves and continues.

Under a launcher such as `torchrun` a signal comes several times: from the terminal or the cluster, and from the
launcher, which kills processes that do not stop. There, repeated signals change nothing.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Requests", "heeding_signals"]

STOPPING = (signal.SIGINT, signal.SIGTERM)
SAVING = (signal.SIGUSR1,) if hasattr(signal, "SIGUSR1") else ()  # Windows has none


class Requests:
    """Requests by signals: to stop, or to save and continue."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.wants_save = False

    def stop(self) -> bool:
        """Whether a signal to stop has come."""
        return self.signal is not None

    def save_now(self) -> bool:
        """Return True once for each request to save."""
        asked, self.wants_save = self.wants_save, False
        return asked

    def leave(self) -> None:
        """Exit as the signal would have, after everything is saved; another process may have received it."""
        if self.signal is signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + (self.signal or signal.SIGTERM))


@contextmanager
def heeding_signals(*, launched: bool) -> Iterator[Requests]:
    """Record the first SIGINT or SIGTERM and each SIGUSR1 in this context; in the main thread only.

    Args:
        launched: whether a launcher controls this process; then all signals are only recorded.
    """
    requests = Requests()
    if threading.current_thread() is not threading.main_thread():
        yield requests
        return

    def note_stop(number: int, frame: FrameType | None) -> None:
        requests.signal = signal.Signals(number)
        if not launched:
            for each in STOPPING:
                signal.signal(each, before.get(each, signal.SIG_DFL))  # the next one is not held back

    def note_save(number: int, frame: FrameType | None) -> None:
        requests.wants_save = True

    noting = dict.fromkeys(STOPPING, note_stop) | dict.fromkeys(SAVING, note_save)
    before = {each: signal.getsignal(each) or signal.SIG_DFL for each in noting}  # None: not set from Python
    for each, note in noting.items():
        signal.signal(each, note)
    try:
        yield requests
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
