"""API keys: random texts of which only the SHA-256 digest is stored.

A key has 256 random bits, so it cannot be guessed from a fast hash; a slow password hash would only help an
attacker who wants to keep the server busy.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from bitext.files import keep_owner, locked_beside, replacing, write_atomically
from bitext.shell import command_line
from manyheads.checkpoint.files import as_json, check_nodes
from manyheads.errors import DataError, RunError, UsageError
from manyheads.files import read_bytes, reading, saving

_FORMAT = 1
_WAIT_SECONDS = 10.0  # for another process that changes the file
_RELOAD_SECONDS = 1.0  # between two checks whether the file has changed


@dataclass(frozen=True)
class Key:
    """An API key without its secret.

    Attributes:
        name: name of the key, for people.
        sha256: digest of the secret, in hexadecimal.
        req_limit: requests per minute; None means the server's default, 0 means no limit.
    """

    name: str
    sha256: str
    req_limit: int | None = None


class KeyFile:
    """A JSON file of API keys that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def content(self) -> bytes:
        """Return the bytes of the file; raises `DataError` if it is missing or cannot be read."""
        with reading(self.path, DataError):
            path = self.path.resolve()  # a link may lead to another file later
            if path.exists():
                return read_bytes(path)
        command = command_line("manyheads", "serve", "keys", "add", self.path, "NAME")
        raise DataError(f"{self.path} does not exist. Make it: {command}")

    def read(self) -> list[Key]:
        """Return all keys."""
        return self.parse(self.content())

    def parse(self, content: bytes) -> list[Key]:
        """Return the keys in the content of the file; raises `DataError`."""
        try:
            document = json.loads(check_nodes(content, self.path))
            if document["format"] != _FORMAT:
                raise DataError(f"{self.path} has format {document['format']}, and this version reads {_FORMAT}.")
            return [_key_of(entry) for entry in document["keys"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(f"{self.path} cannot be read as a file of keys: {type(error).__name__}.") from error

    def write(self, keys: Sequence[Key]) -> None:
        """Replace the file by one with these keys; its owner, such as the user of a service, stays the same."""
        path = self.path.resolve()
        with saving("the keys", self.path, "The keys are unchanged."), replacing(path) as draft:
            write_atomically(draft, as_json({"format": _FORMAT, "keys": [vars(key) for key in keys]}), mode=0o600)
            keep_owner(path, draft, mode=0o600)

    def locked(self) -> AbstractContextManager[None]:
        """Lock the file against other processes that change it; wait for them."""
        return locked_beside(self.path.resolve(), DataError, wait=_WAIT_SECONDS)

    def add(
        self, name: str, req_limit: int | None = None, show: Callable[[str], object] = lambda secret: None
    ) -> str:
        """Add a new key and return its secret, which is not stored. `show` is called first: its errors add no key.

        Raises:
            UsageError: the name is taken.
        """
        secret = f"mh-{secrets.token_urlsafe(32)}"
        with self.locked():
            keys = self.read() if self.path.exists() else []
            if any(key.name == name for key in keys):
                raise UsageError(
                    f"{self.path} has a key named {name}. Choose another name, or remove that one first."
                )
            show(secret)
            self.write([*keys, Key(name, _digest(secret), req_limit)])
        return secret

    def remove(self, name: str) -> None:
        """Remove a key.

        Raises:
            UsageError: there is no key of this name.
        """
        with self.locked():
            keys = self.read()
            if not any(key.name == name for key in keys):
                names = ", ".join(key.name for key in keys) or "none"
                raise UsageError(f"{self.path} has no key named {name}. It has: {names}.")
            self.write([key for key in keys if key.name != name])


class KeyRing:
    """The keys of a running server; a change of the file takes effect within a second."""

    def __init__(self, file: KeyFile) -> None:
        self.file = file
        self.content = file.content()
        self.keys = file.parse(self.content)
        self.checked_at = monotonic()

    def find(self, secret: str) -> Key | None:
        """Return the key with this secret, or None; all keys are compared, each in constant time."""
        self.reload()
        sent = _digest(secret)
        match = None
        for key in self.keys:
            if hmac.compare_digest(key.sha256, sent):
                match = key
        return match

    def reload(self) -> None:
        """Read the file again if it has changed; keep the keys if it is missing or damaged."""
        if monotonic() - self.checked_at < _RELOAD_SECONDS:
            return
        self.checked_at = monotonic()
        with suppress(DataError, RunError):
            content = self.file.content()
            if content != self.content:
                self.keys, self.content = self.file.parse(content), content


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _key_of(entry: dict[str, Any]) -> Key:
    """Return the key of an entry of the file.

    Raises:
        ValueError, KeyError, TypeError: the entry is not valid.
    """
    name, sha256, req_limit = entry["name"], entry["sha256"], entry.get("req_limit")
    if not isinstance(name, str) or len(bytes.fromhex(sha256)) != 32:
        raise ValueError("no key")
    if req_limit is not None and not isinstance(req_limit, int):
        raise ValueError("no limit")
    return Key(name, sha256, req_limit)
