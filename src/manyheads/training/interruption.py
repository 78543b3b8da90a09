"""The progress of long computations, and requests to stop them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from manyheads.reports import NO_LISTENER, Advance, Listener
from manyheads.training.distributed import ALONE, World

_Result = TypeVar("_Result")


class Interrupted(Exception):
    """A computation ended early because a stop was requested; its results so far are dropped."""


def never(*_: object) -> bool:
    """Return False: the default of callbacks."""
    return False


@dataclass(frozen=True)
class Watch:
    """Shows the progress of long computations, and ends them on request.

    Attributes:
        listener: receives messages and the progress of phases.
        stop: returns whether a stop is requested of this process.
        world: the processes that train together; all of them make the same calls.
    """

    listener: Listener = NO_LISTENER
    stop: Callable[[], bool] = never
    world: World = ALONE

    def check(self) -> None:
        """Raise `Interrupted` in all processes if a stop is requested of one of them."""
        if self.world.total([self.stop()])[0]:
            raise Interrupted

    @contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Show the progress of a phase (`Listener.phase`), in which the processes do not communicate.

        When a stop is requested, the yielded function ends the phase. All processes then raise `Interrupted`.
        """
        with suppress(Interrupted), self.listener.phase(name, total, unit) as show:

            def advance(count: int) -> None:
                show(count)
                if self.stop():
                    raise Interrupted

            yield advance
        self.check()


UNWATCHED = Watch()


def call_in_thread(function: Callable[[], _Result]) -> _Result:
    """Call a function of C++ in a thread and wait: the calling thread can be interrupted by signals meanwhile."""
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()  # a daemon: the program does not wait for it when interrupted
    return future.result()
