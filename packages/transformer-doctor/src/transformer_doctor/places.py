"""Lines of the examined code, as the place of a finding."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from pathlib import Path
from typing import Any

from transformer_doctor.report import Place

_LIBRARIES = (str(Path(__file__).parent), str(Path(os.__file__).parent), "<")


def place_of(model: Any) -> Place | None:
    """Return file and line of the code of a model: its forward, or the function; None if its source is unknown."""
    while isinstance(model, functools.partial):
        model = model.func
    code = model if inspect.isroutine(model) else getattr(type(model), "forward", type(model))
    try:
        file, (_, line) = inspect.getsourcefile(code), inspect.getsourcelines(code)
    except (OSError, TypeError):
        return None
    return None if file is None else Place(relative_path(file), max(1, line))


def relative_path(file: str) -> str:
    """Return a path with forward slashes, relative to the working directory where it is below it."""
    path = Path(file).resolve()
    return (path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path).as_posix()


def line_of_user() -> Place | None:
    """Return the innermost line of the running program that belongs to no library, None if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_LIBRARIES) and "site-packages" not in file:
            return Place(relative_path(file), frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None
