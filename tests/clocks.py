"""A fake clock that tests use instead of the module `time` or one of its functions."""

from __future__ import annotations


class Clock:
    """A clock whose time the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time that is set, in seconds."""
        return self.now

    monotonic = __call__
