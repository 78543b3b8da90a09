"""Translated files that wait for their download: in memory, under names that cannot be guessed."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

from manyheads.serving.responses import ApiError

_SECONDS = 600.0  # that a file waits for its download


@dataclass(frozen=True)
class TranslatedFile:
    """A translated file.

    Attributes:
        name: its name.
        data: its bytes.
        media_type: media type of its format.
        key: name of the API key that its request had; None if the server asks for none.
    """

    name: str
    data: bytes
    media_type: str
    key: str | None


class TranslatedFiles:
    """Translated files by their names in the address; each until its first download, ten minutes at most.

    Args:
        limit: maximum size of all files together, in bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.files: dict[str, TranslatedFile] = {}

    def add(self, file: TranslatedFile) -> str:
        """Keep a file, and return its name in the address.

        Raises:
            ApiError: 503, too many files wait for their download.
        """
        if sum(len(kept.data) for kept in self.files.values()) + len(file.data) > self.limit:
            raise ApiError(503, "Too many files wait for their download", retry_after=_SECONDS)
        name = f"{secrets.token_urlsafe(24)}.{file.name}"
        self.files[name] = file
        asyncio.get_running_loop().call_later(_SECONDS, self.files.pop, name, None)
        return name

    def take(self, name: str, key: str | None) -> TranslatedFile:
        """Return a file, and forget it.

        Raises:
            ApiError: 404, there is no such file, or its request had another key.
        """
        file = self.files.get(name)
        if file is None or file.key != key:
            raise ApiError(404, "There is no such file, or it has been downloaded")
        return self.files.pop(name)
