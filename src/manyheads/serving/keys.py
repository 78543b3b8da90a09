"""API keys: random texts of which only the SHA-256 digest is stored.

A key has 256 random bits, so it cannot be guessed from a fast hash; a slow password hash would only help an
attacker who wants to keep the server busy.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from manyheads.checkpoint.files import as_json, saving, write_atomically
from manyheads.errors import DataError, UsageError
from manyheads.shell import command_line

__all__ = ["Key", "KeyFile", "KeyRing"]

FORMAT = 1
RELOAD_SECONDS = 1.0  # between two checks whether the file has changed


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

    def read(self) -> list[Key]:
        """Return all keys.

        Raises:
            DataError: the file is missing or is no file of keys.
        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise DataError(f"{self.path} has format {content['format']}, and this version reads {FORMAT}.")
            return [key_of(entry) for entry in content["keys"]]
        except FileNotFoundError as error:
            command = command_line("manyheads", "serve", "keys", "add", self.path, "NAME")
            raise DataError(f"{self.path} does not exist. Make it: {command}") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{self.path} cannot be read as a file of keys: {type(error).__name__}.") from error

    def write(self, keys: Sequence[Key]) -> None:
        """Replace the file by one with these keys; its owner, such as the user of a service, stays the same."""
        with saving("the keys", self.path):
            status = self.path.stat() if self.path.exists() else None
            write_atomically(self.path, as_json({"format": FORMAT, "keys": [vars(key) for key in keys]}))
            os.chmod(self.path, 0o600)
            if status is not None and status.st_uid != self.path.stat().st_uid:
                os.chown(self.path, status.st_uid, status.st_gid)

    def add(self, name: str, req_limit: int | None = None) -> str:
        """Add a new key and return its secret, which is not stored.

        Raises:
            UsageError: the name is taken.
        """
        keys = self.read() if self.path.exists() else []
        if any(key.name == name for key in keys):
            raise UsageError(f"{self.path} has a key named {name}. Choose another name, or remove that one first.")
        secret = f"mh-{secrets.token_urlsafe(32)}"
        self.write([*keys, Key(name, digest(secret), req_limit)])
        return secret

    def remove(self, name: str) -> None:
        """Remove a key.

        Raises:
            UsageError: there is no key of this name.
        """
        keys = self.read()
        if not any(key.name == name for key in keys):
            names = ", ".join(key.name for key in keys) or "none"
            raise UsageError(f"{self.path} has no key named {name}. It has: {names}.")
        self.write([key for key in keys if key.name != name])


class KeyRing:
    """The keys of a running server; a change of the file takes effect within a second."""

    def __init__(self, file: KeyFile) -> None:
        self.file = file
        self.keys = file.read()
        self.state: tuple[int, int] | None = None  # modification time (ns) and inode of the file
        self.checked_at = 0.0

    def find(self, secret: str) -> Key | None:
        """Return the key with this secret, or None; all keys are compared, each in constant time."""
        self.reload()
        sent = digest(secret)
        match = None
        for key in self.keys:
            if hmac.compare_digest(key.sha256, sent):
                match = key
        return match

    def reload(self) -> None:
        """Read the file again if it has changed; keep the keys if it is missing or damaged."""
        if monotonic() - self.checked_at < RELOAD_SECONDS:
            return
        self.checked_at = monotonic()
        with suppress(OSError, DataError):
            status = self.file.path.stat()
            state = status.st_mtime_ns, status.st_ino
            if state != self.state:
                self.keys, self.state = self.file.read(), state


def digest(secret: str) -> str:
    """Return the SHA-256 digest of a secret in hexadecimal."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def key_of(entry: dict[str, Any]) -> Key:
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
