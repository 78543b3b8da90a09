"""Listeners, which show the progress of long steps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

Advance = Callable[[int], object]  # called with the number of items that a phase has done since the last call


class Listener(Protocol):
    """Receives the progress of an examination."""

    def phase(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
        """Return a context that shows the progress of a phase which may take longer than two seconds.

        Args:
            name: what is being done, such as "training".
            total: number of items, if it is known.
            unit: name of the items, such as "updates".
        """
        ...

    def message(self, text: str) -> None:
        """Receive a line of text for people, such as a warning."""
        ...


class SilentListener:
    """A listener that shows nothing."""

    def phase(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
        """Ignore the progress."""
        return nullcontext(lambda count: None)

    def message(self, text: str) -> None:
        """Ignore the text."""


NO_LISTENER = SilentListener()
