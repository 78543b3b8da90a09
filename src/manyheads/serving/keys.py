"""Keys of an API: random texts of which only SHA-256 is kept.

A key has 256 random bits, which nobody guesses from a plain hash; a slow one would help nobody but an attacker who
wants to keep the server busy.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from manyheads.checkpoint.files import as_json, saving, write_atomically
from manyheads.errors import DataError, UsageError

__all__ = ["Key", "KeyFile", "KeyRing"]

FORMAT = 1
LOOK_AGAIN = 1.0  # seconds after which the file may have changed


@dataclass(frozen=True)
class Key:
    """Who may ask.

    Attributes:
        name: for people.
        sha256: of the key itself, in hexadecimal.
        req_limit: requests a minute; None is what holds for all, 0 is any number.
    """

    name: str
    sha256: str
    req_limit: int | None = None


class KeyFile:
    """The keys of a server in a JSON file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Key]:
        """All keys.

        Raises:
            DataError: the file is missing or none of ours.
        """
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise DataError(f"{self.path} has format {content['format']}, and this version reads {FORMAT}.")
            return [key_of(entry) for entry in content["keys"]]
        except FileNotFoundError as error:
            raise DataError(f"{self.path} does not exist. Make it: manyheads keys add {self.path} NAME") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{self.path} cannot be read as a file of keys: {type(error).__name__}.") from error

    def write(self, keys: Sequence[Key]) -> None:
        """Replace the file."""
        with saving("the keys", self.path):
            write_atomically(self.path, as_json({"format": FORMAT, "keys": [vars(key) for key in keys]}))
            os.chmod(self.path, 0o600)

    def add(self, name: str, req_limit: int | None = None) -> str:
        """Make a key; it is returned, and can never be seen again.

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
        """Forget a key.

        Raises:
            UsageError: there is none of this name.
        """
        keys = self.read()
        if not any(key.name == name for key in keys):
            names = ", ".join(key.name for key in keys) or "none"
            raise UsageError(f"{self.path} has no key named {name}. It has: {names}.")
        self.write([key for key in keys if key.name != name])


class KeyRing:
    """The keys that a running server knows; a change of the file counts a second later at the latest."""

    def __init__(self, file: KeyFile) -> None:
        self.file = file
        self.keys = file.read()
        self.state = self.stat()
        self.looked = monotonic()

    def stat(self) -> tuple[int, int] | None:
        """What changes when the file does."""
        try:
            found = self.file.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def find(self, secret: str) -> Key | None:
        """The key that a text is; every key is compared, each in the same time whatever the text is."""
        self.renew()
        given = digest(secret)
        found = None
        for key in self.keys:
            if hmac.compare_digest(key.sha256, given):
                found = key
        return found

    def renew(self) -> None:
        """Read the file again if it has changed; a file that has gone or is damaged changes nothing."""
        if monotonic() - self.looked < LOOK_AGAIN:
            return
        self.looked = monotonic()
        state = self.stat()
        if state is None or state == self.state:
            return
        try:
            self.keys, self.state = self.file.read(), state
        except DataError:
            return


def digest(secret: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def key_of(entry: dict[str, Any]) -> Key:
    """A key as it stands in the file; raises `ValueError` and its like for what is none."""
    name, sha256, req_limit = entry["name"], entry["sha256"], entry.get("req_limit")
    if not isinstance(name, str) or len(bytes.fromhex(sha256)) != 32:
        raise ValueError("no key")
    if req_limit is not None and not isinstance(req_limit, int):
        raise ValueError("no limit")
    return Key(name, sha256, req_limit)
