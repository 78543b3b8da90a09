"""Lines of the examined code, as the place of a finding."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

from transformer_doctor.report import Place


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
