"""Lines of the examined code, as the place of a finding."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from transformer_doctor.report import Place

_LIBRARIES = ("site-packages", "dist-packages", str(Path(os.__file__).parent))
_OWN_CODE = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
_CALLER = str(Path(__file__).with_name("model_adapter.py"))  # what it calls is the examined code


def place_of(model: Any) -> Place | None:
    """Return file and line of the class of a model, or of the function; None if in no file."""
    while isinstance(model, functools.partial):
        model = model.func
    code = model if inspect.isroutine(model) or isinstance(model, type) else type(model)
    try:
        file, (_, line) = inspect.getsourcefile(code), inspect.getsourcelines(code)
    except (OSError, TypeError):
        return None
    return None if file is None else _place(file, max(1, line))


def _place(file: str, line: int) -> Place | None:
    """Return a place; None for code of a string, a notebook or an archive: its name is that of no file."""
    path = _relative_path(file, os.getcwd())
    return None if path is None else Place(path, line)


@functools.cache
def _relative_path(file: str, folder: str) -> str | None:
    path = Path(file).resolve()
    if not path.is_file():
        return None
    return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()


def running_place() -> Place | None:
    """Return the innermost line of the running program that is neither torch's nor the doctor's, None without one.

    A line of a library counts only where no line of other code called it.
    """
    return _innermost_place(_running_lines())


def raising_place(error: BaseException) -> Place | None:
    """Return the line that raised an exception, or called the library that did; None if it is in no file."""
    frames = traceback.extract_tb(error.__traceback__)
    return _innermost_place((frame.filename, frame.lineno or 1) for frame in reversed(frames))


def _running_lines() -> Iterator[tuple[str, int]]:
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _CALLER:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]


def _innermost_place(lines: Iterable[tuple[str, int]]) -> Place | None:
    """Return the first of some lines, the innermost first, that is the user's; else the first of a library."""
    of_library = None
    for file, line in lines:
        place = None if file.startswith(_OWN_CODE) else _place(file, line)
        if place is not None and not any(part in file for part in _LIBRARIES):
            return place
        of_library = of_library or place
    return of_library
