"""Errors that a user can fix, and descriptions of those of a user's code, by the line of it that raised them."""

from __future__ import annotations

import importlib
import os
import traceback
from pathlib import Path
from typing import Any

_OWN = str(Path(__file__).parent)  # of the doctor, which also holds the programs of the museum
_MUSEUM = str(Path(__file__).parent / "museum")
_PYTHON, _TORCH = str(Path(os.__file__).parent), f"{os.sep}site-packages{os.sep}torch{os.sep}"


class DoctorError(Exception):
    """Base class of errors that a user can fix; `exit_code` is the exit code of the command line."""

    exit_code = 1


class UsageError(DoctorError):
    """An invalid command line or function argument."""

    exit_code = 2


class MissingPackageError(DoctorError):
    """An optional package that is not installed; the message holds the pip line."""

    exit_code = 4


def is_for_users(error: BaseException) -> bool:
    """Return whether the message of an error says what is wrong and what to do.

    Those of the doctor do, and those of a program that gives its own errors an `exit_code`, as the doctor does.
    """
    return hasattr(error, "exit_code")


def require(package: str, purpose: str) -> Any:
    """Import an optional package.

    Raises:
        MissingPackageError: it is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]  # of a submodule, that of its package
        raise MissingPackageError(
            f"{purpose} needs the package {name}, which is not installed. Install it with: pip install {name}"
        ) from error


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
    """Return type, message and place of an exception: "KeyError: 'mask' (model.py, line 41)"."""
    name, frame = headline(error), raising_frame(error)
    return name if frame is None else f"{name} ({Path(frame.filename).name}, line {frame.lineno})"


def raising_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Return the innermost frame of an exception that belongs neither to the doctor nor to torch, None without one.

    A frame of another library counts only where no other code called it.
    """
    traced = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in traced if not _is_own(frame.filename) and not _is_between(frame)]
    return next(reversed([frame for frame in frames if "site-packages" not in frame.filename] or frames), None)
