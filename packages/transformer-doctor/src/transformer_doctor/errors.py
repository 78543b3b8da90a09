"""Errors that a user can fix. Any other exception is a bug of the doctor, or of the code that it examines."""

from __future__ import annotations

import importlib
from typing import Any


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
        raise MissingPackageError(
            f"{purpose} needs the package {package}, which is not installed. Install it with: pip install {package}"
        ) from error
