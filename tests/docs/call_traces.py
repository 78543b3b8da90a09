"""Compare the call sequences that the documents describe with the functions that run."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGE = Path(__file__).parent.parent.parent / "src" / "manyheads"
Call = tuple[str, str]  # a file below src/manyheads, and the qualified name of a function in it

# A file, or a function with empty brackets, in backticks.
NAMED = re.compile(r"`([\w/]+\.(?:py|c|h))`|`([\w.]+)\(\)`")


def section(text: str, heading: str) -> str:
    """Return the text below a heading, up to the next one."""
    return re.split(r"^#", text.split(f"{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def named_calls(text: str) -> list[Call]:
    """Return the functions that a text names, in order; each belongs to the file that was named last.

    Functions of C are left out.
    """
    calls, file = [], ""
    for path, function in NAMED.findall(text):
        file = path or file
        if function and file.endswith(".py") and (file, function) not in calls:
            calls.append((file, function))
    return calls


@contextmanager
def calls_of() -> Iterator[list[Call]]:
    """Collect the functions of the package that are called inside the context, in any thread, by first call."""
    codes: dict[CodeType, None] = {}
    calls: list[Call] = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            codes.setdefault(frame.f_code)

    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
        for code in list(codes):
            path = Path(code.co_filename)
            if path.is_relative_to(PACKAGE):
                calls.append((path.relative_to(PACKAGE).as_posix(), code.co_qualname))


def first_calls(function: Callable[[], object]) -> list[Call]:
    """Call a function, and return the functions of the package that it calls, in order of their first calls."""
    with calls_of() as calls:
        function()
    return calls
