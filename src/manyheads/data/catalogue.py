"""The public corpora that can be fetched by name: `catalogue.toml` has their addresses, checksums and terms."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from manyheads.data.tatoeba import unpack_sentences

__all__ = ["CORPORA", "Corpus", "RemoteFile"]


@dataclass(frozen=True)
class RemoteFile:
    """One file of a corpus.

    Attributes:
        name: name of the local file.
        mirrors: addresses, tried in this order.
        sha256: expected SHA-256; None if the content changes with time, then the sum of the download is recorded.
        size: expected number of bytes, if known.
    """

    name: str
    mirrors: tuple[str, ...]
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class Corpus:
    """A corpus that can be fetched.

    Attributes:
        name: name of the corpus and of its folder.
        description: one line about the corpus.
        terms: terms of use, as far as its origin states them.
        files: files to fetch.
        unpack: makes the splits from the files in the folder and returns one line about them.
    """

    name: str
    description: str
    terms: str
    files: tuple[RemoteFile, ...]
    unpack: Callable[[Path], str] | None = None


def read_corpora() -> dict[str, Corpus]:
    """Read the corpora of `catalogue.toml` by name."""
    tables = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text(encoding="utf-8"))
    return {name: make_corpus(name, **table) for name, table in tables.items()}


def make_corpus(
    name: str,
    *,
    description: str,
    terms: str,
    mirrors: list[str],
    files: list[dict[str, Any]],
    sentences: dict[str, Any] | None = None,
) -> Corpus:
    """Make a corpus of a table.

    Args:
        name: name of the corpus.
        description: see `Corpus`.
        terms: see `Corpus`.
        mirrors: addresses with `{name}` in the place of a file's name.
        files: fields of `RemoteFile`, without mirrors.
        sentences: arguments of `unpack_sentences`, for an archive of manythings.org.
    """
    remote = (
        RemoteFile(mirrors=tuple(mirror.format(name=file["name"]) for mirror in mirrors), **file) for file in files
    )
    return Corpus(
        name, description, terms, tuple(remote), partial(unpack_sentences, **sentences) if sentences else None
    )


CORPORA: Mapping[str, Corpus] = MappingProxyType(read_corpora())
