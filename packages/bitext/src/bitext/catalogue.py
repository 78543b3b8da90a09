"""Read `catalogue.toml`: the public corpora that can be fetched by name, with addresses, checksums and terms."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class RemoteFile:
    """One file of a corpus.

    Attributes:
        name: name of the local file.
        sha256: expected SHA-256; None if the content changes with time; the sum of the download is then recorded.
        size: expected number of bytes, if known.
    """

    name: str
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class Corpus:
    """A corpus that can be fetched.

    Attributes:
        name: name of the corpus and of its folder.
        description: one line about the corpus.
        terms: terms of use, if its origin states them.
        mirrors: addresses, tried in this order, with the placeholder `{name}` for the name of a file.
        files: files to fetch.
        sentences: arguments of `unpack_sentences`, for an archive of manythings.org.
    """

    name: str
    description: str
    terms: str
    mirrors: tuple[str, ...]
    files: tuple[RemoteFile, ...]
    sentences: Mapping[str, Any] | None = None


def _read_corpora() -> dict[str, Corpus]:
    tables = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8"))
    for table in tables.values():
        table["files"] = tuple(RemoteFile(**file) for file in table["files"])
    return {name: Corpus(name, **table) for name, table in tables.items()}


CORPORA: Mapping[str, Corpus] = MappingProxyType(_read_corpora())
