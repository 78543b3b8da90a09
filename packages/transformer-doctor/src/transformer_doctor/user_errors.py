"""Show errors of a user's code without the frames of the doctor and of torch around them."""

from __future__ import annotations

import functools
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from transformer_doctor.errors import DoctorError

_OWN = str(Path(__file__).parent)  # of the doctor, which also holds the programs of the museum
_MUSEUM = str(Path(__file__).parent / "museum")
_PYTHON, _TORCH = str(Path(os.__file__).parent), f"{os.sep}site-packages{os.sep}torch{os.sep}"
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def hide_own_frames(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Return a function whose exceptions show one frame of the doctor at most, except for bugs of the doctor."""

    @functools.wraps(function)
    def wrapped(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except DoctorError as error:
            raise error.with_traceback(None) from None
        except Exception as error:
            raise error.with_traceback(without_own_frames(error)) from error.__cause__

    return wrapped


def without_own_frames(error: Exception) -> TracebackType | None:
    """Return the traceback of an error, without the frames of the doctor if a user's code raised it."""
    if not is_from_user(error):
        return error.__traceback__
    frames = []
    step = error.__traceback__
    while step is not None:
        frames.append(step)
        step = step.tb_next
    shown = None
    for frame in reversed(frames):
        if not _is_own(frame.tb_frame.f_code.co_filename):
            shown = TracebackType(shown, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return shown


def _is_own(file: str) -> bool:
    """Return whether a file is part of the doctor; the museum's programs are examined like those of a user."""
    return file.startswith(_OWN) and not file.startswith(_MUSEUM)


def is_from_user(error: BaseException) -> bool:
    """Return whether an exception was raised by a user's code, or by a library that it called."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_between(frame)]
    return bool(frames) and not _is_own(frames[-1].filename)


def _is_between(frame: traceback.FrameSummary) -> bool:
    """Return whether a frame of torch or Python lies between the code that caused an error and the error.

    The modes by which the doctor follows operations are called by torch below the user's code.
    """
    file = frame.filename
    library = file.startswith(_PYTHON) and "site-packages" not in file
    return library or file.startswith("<") or _TORCH in file or frame.name == "__torch_function__"


def headline(error: BaseException) -> str:
    """Return the type of an exception and the first line of its message, without a full stop."""
    message = str(error).strip().partition("\n")[0].rstrip(".")
    return type(error).__name__ + (f": {message}" if message else "")


def describe_error(error: BaseException) -> str:
    """Return type, message and place of an exception: "KeyError: 'mask' (model.py, line 41)".

    The place is the innermost line that belongs neither to the doctor nor to torch, where there is one.
    """
    name = headline(error)
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if not _is_own(frame.filename) and not _is_between(frame)]
    return f"{name} ({Path(places[-1].filename).name}, line {places[-1].lineno})" if places else name
