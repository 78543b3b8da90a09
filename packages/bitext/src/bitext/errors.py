"""Errors that a user can fix, and the exit code of each.

```
BitextError               1   base class, never raised itself
├── UsageError            2   a command line, a function argument
├── DataError             3   text that cannot be used: file, line, cure
│   └── WriteError        3   a file that could not be written; what was finished before is kept
└── MissingExtraError     4   an optional package: the message holds the pip line
```

A message says what is wrong with its value, where, and what to do. It is printed as one ``error:`` line,
without a traceback. Any other exception is a bug, and shows its traceback.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

_MAX_LINE = 1_000  # characters of a line of a message


class BitextError(Exception):
    """Base class of errors that a user can fix; `exit_code` is the exit code of the command line.

    The message is `printable`: it may hold text of a file, which must not control a terminal.
    """

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class UsageError(BitextError):
    """An invalid command line or function argument."""

    exit_code = 2


class DataError(BitextError):
    """Text that cannot be used; the message names the file, the line and the cure."""

    exit_code = 3


class WriteError(DataError):
    """A file that could not be written; what was finished before is kept."""


class MissingExtraError(BitextError):
    """An optional package that is not installed; the message holds the pip line."""

    exit_code = 4

    @classmethod
    def of(cls, package: str, purpose: str, pip: str) -> MissingExtraError:
        """Return the error for a feature, the subject of the message, and what pip installs for it."""
        return cls(
            f"{purpose} needs the package {package}, which is not installed. Install it with: pip install {pip}"
        )


def printable(message: str) -> str:
    """Return a message for a terminal or a client: no control characters, no line of more than 1,000 characters.

    Names in a message may come from a damaged or hostile file. Only line ends before an indented line are kept.
    """
    lines = ("".join(c if c.isprintable() else repr(c)[1:-1] for c in line) for line in message.split("\n  "))
    return "\n  ".join(
        line if len(line) <= _MAX_LINE else f"{line[:600]} ... {len(line) - 900:,} characters ... {line[-300:]}"
        for line in lines
    )


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a module that needs an optional package; if that is missing, the error has the pip line.

    Args:
        module: module to import, such as ``"pyarrow.parquet"``.
        extra: extra of bitext that installs the package.
        purpose: feature that needs it, the subject of the message.

    Raises:
        MissingExtraError: the module, or a package that it imports, cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = (error.name or module).partition(".")[0]
        raise MissingExtraError.of(package, purpose, f'"bitext[{extra}]"') from error
