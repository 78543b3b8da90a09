"""Lines for the user's terminal that only --verbose prints."""

from __future__ import annotations


class Note(str):
    """A sentence or line that asks for no action; the command line prints it with --verbose only."""

    __slots__ = ()
