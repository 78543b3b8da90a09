"""Suggested corrections of translations: a file of one JSON object a line, which a server extends.

Each line is written whole or not at all, and synced. Two processes may extend the same file.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitext.files import locked_beside, writing
from manyheads.errors import DataError, WriteError
from manyheads.files import reading

MAX_BYTES = 64 * 2**20  # size of a file, above which it takes no more suggestions
_WAIT_SECONDS = 10.0  # for another process that extends the file


@dataclass(frozen=True)
class Suggestion:
    """A suggested correction of a translation.

    Attributes:
        time: time of the suggestion, in UTC (ISO 8601).
        languages: codes of the languages of source and target.
        source: the source text.
        output: the output of the served model at that time.
        correction: the suggested translation.
        key: first digits of the SHA-256 digest of the client's API key; None if the server asked for none.
    """

    time: str
    languages: tuple[str, str]
    source: str
    output: str
    correction: str
    key: str | None = None


class SuggestionFile:
    """A file of suggestions."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()  # a link may lead to another file later

    def check(self) -> None:
        """Check that the file can be extended, and create it if it is missing.

        Raises:
            WriteError: it is no regular file, or cannot be written.
        """
        if self.path.exists() and not self.path.is_file():
            raise WriteError(f"{self.path} is no regular file. Name a file for the suggestions.")
        self._extend(b"")

    def append(self, suggestion: Suggestion) -> None:
        """Append a line and sync it; after an error the file is as it was."""
        self._extend(json.dumps(vars(suggestion), ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def _extend(self, line: bytes) -> None:
        with (
            locked_beside(self.path, WriteError, wait=_WAIT_SECONDS),
            writing(self.path),
            open(self.path, "a+b", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600)) as file,
        ):
            size = file.seek(0, os.SEEK_END)
            if line and size + len(line) > MAX_BYTES:
                raise WriteError(
                    f"{self.path} has {size:,} bytes, and {MAX_BYTES:,} is the most. Review it, and move it away."
                )
            if line and size and not _ends_with_line_end(file.fileno(), size):  # after a crash of the machine
                line = b"\n" + line
            try:
                while line:
                    line = line[file.write(line) :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(size)
                raise

    def read(self) -> tuple[list[Suggestion], list[int]]:
        """Return all suggestions, and the numbers of the lines that hold none."""
        suggestions, damaged = [], []
        with reading(self.path, DataError), open(self.path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    suggestions.append(_suggestion_of(json.loads(line)))
                except (ValueError, KeyError, TypeError, RecursionError):
                    damaged.append(number)
        return suggestions, damaged


def _ends_with_line_end(handle: int, size: int) -> bool:
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1) == b"\n"


def _suggestion_of(entry: dict[str, Any]) -> Suggestion:
    """Return the suggestion of a line.

    Raises:
        ValueError, KeyError, TypeError: the line is not valid.
    """
    source_language, target_language = entry["languages"]
    time, source, output, correction = texts = [entry[name] for name in ("time", "source", "output", "correction")]
    if not all(isinstance(text, str) for text in [*texts, source_language, target_language]):
        raise ValueError("no suggestion")
    key = entry.get("key")
    languages = source_language, target_language
    return Suggestion(time, languages, source, output, correction, None if key is None else str(key))
