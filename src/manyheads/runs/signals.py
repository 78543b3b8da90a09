"""Ctrl-C and SIGTERM: finish the step, save, leave; the second one leaves at once. SIGUSR1: save and go on.

Under a launcher such as `torchrun` one request comes several times: from the terminal or the cluster, and from the
launcher, which makes an end itself of what does not stop. There a second one changes nothing.
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
    """What somebody asked for by a signal: to stop, or to save and go on."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.wants_save = False

    def stop(self) -> bool:
        """True once a signal to stop has come."""
        return self.signal is not None

    def save_now(self) -> bool:
        """True once for each time that saving was asked for."""
        asked, self.wants_save = self.wants_save, False
        return asked

    def leave(self) -> None:
        """End the program as the signal would have, now that all is saved; maybe another process had it."""
        if self.signal is signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + (self.signal or signal.SIGTERM))


@contextmanager
def heeding_signals(*, launched: bool) -> Iterator[Requests]:
    """While open, the first SIGINT or SIGTERM and each SIGUSR1 are only noted; outside the main thread none is.

    Args:
        launched: whether a launcher watches over this process; then all are only noted.
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
