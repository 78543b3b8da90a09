"""Handle Ctrl-C, SIGTERM and SIGHUP where a verb does not: print one word, and exit with the right code.

The first signal raises an exception in the main thread, so that files that are being written are removed. While a
module is being imported, it ends the program at once: an exception may be lost or changed there. A repetition
within a second is the same request; a later one ends the program at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType

_LAUNCHER_SECONDS = 3.0  # until a launcher has noticed that a process ended, and has ended the others
_CONNECTION = ("gloo", "NCCL", "Dist", "peer", "Connection")  # in an error, if another process ended
_REPEAT = 1.0  # seconds in which a repeated signal is the same request
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
if hasattr(signal, "SIGHUP"):  # Windows has none; its terminal was closed, or its connection was lost
    WORDS[signal.SIGHUP] = "hung up"


class Terminated(BaseException):
    """Raised after SIGTERM and SIGHUP, as `KeyboardInterrupt` is after Ctrl-C; its argument is the signal."""


class StopSignals:
    """The handlers of the signals that end the program.

    Attributes:
        received: the first signal that was received, or None.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self.first = 0.0  # time of the first signal in seconds

    def install(self) -> None:
        """Handle the signals that are not ignored; only in the main thread, where Python allows it."""
        if threading.current_thread() is threading.main_thread():
            for number in WORDS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, self.handle)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raise `KeyboardInterrupt` or `Terminated`, or end the program."""
        repeated = self.received is not None
        if repeated and time.monotonic() - self.first < _REPEAT:
            return
        self.received = self.received or signal.Signals(number)
        self.first = time.monotonic()
        if repeated or importing(frame):
            with suppress(OSError):  # stderr is closed
                os.write(sys.stderr.fileno(), f"{WORDS[self.received]}\n".encode())
            os._exit(128 + self.received)
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(self.received)


def is_follower() -> bool:
    """Return whether this is one of several processes of a training (`torchrun`), and not the first."""
    return os.environ.get("RANK", "0") != "0" and os.environ.get("WORLD_SIZE", "1") != "1"


def follows_another(error: Exception) -> bool:
    """Return whether an error need not be printed, as another process of the same training has reported its cause.

    The launcher (`torchrun`) ends all processes when one has failed. The likelier an error is the consequence of
    another, the longer it waits for that: the mistakes of a user come first, lost connections last.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return False
    if hasattr(error, "exit_code"):  # of a mistake of the user
        kind = 0
    else:
        kind = 2 if any(sign in f"{type(error).__name__} {error}" for sign in _CONNECTION) else 1
    try:
        time.sleep(_LAUNCHER_SECONDS * (2 * kind + is_follower()))
    except (KeyboardInterrupt, Terminated):
        return True
    return False


def importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported in a frame or in one of its callers."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
