"""Lines of the examined code, as the place of a finding."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from transformer_doctor.errors import raising_frame
from transformer_doctor.report import Place, Report

_LIBRARIES = ("site-packages", "dist-packages", str(Path(os.__file__).parent))
_OWN_CODE = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
_CALLER = str(Path(__file__).with_name("model_adapter.py"))  # what it calls is the examined code


def place_of(model: Any) -> Place | None:
    """Return file and line of the class of a model, or of the function; None if in no file."""
    while isinstance(inspect.unwrap(model), functools.partial):
        model = inspect.unwrap(model).func
    model = inspect.unwrap(model)
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


def placed(report: Report, code: Any) -> Report:
    """Return a report whose findings without a line have that of the class or function that they are about."""
    place = place_of(code)
    return replace(report, findings=[finding.at(finding.place or place) for finding in report.findings])


def raising_place(error: BaseException) -> Place | None:
    """Return the line of the user's code that raised an exception, or called the library that did."""
    frame = raising_frame(error)
    return None if frame is None else _place(frame.filename, frame.lineno or 1)


def running_place() -> Place | None:
    """Return the innermost line of the running program that is neither torch's nor the doctor's, None without one.

    A line of a library counts only where no line of other code called it.
    """
    place, frame = None, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != _CALLER:
        file = frame.f_code.co_filename
        if not file.startswith(_OWN_CODE):
            of_library = any(part in file for part in _LIBRARIES)
            here = _place(file, frame.f_lineno)
            if here is not None and (not of_library or place is None):
                place = here
                if not of_library:
                    break
        frame = frame.f_back  # type: ignore[assignment]
    return place
