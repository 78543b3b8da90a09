"""Fetch public corpora by name from several mirrors, check them by SHA-256, and write them atomically."""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from bitext.catalogue import CORPORA, Corpus, RemoteFile
from bitext.errors import DataError, UsageError
from bitext.files import locked_beside, os_errors, replacing, sum_of, write_atomically
from bitext.program import BITEXT, Program
from bitext.sources import ENDING, TextSource, sources_path, write_sources
from bitext.tatoeba import unpack_sentences

_TIMEOUT = 30  # seconds without an answer or a byte
_MAX_BYTES = 1 << 30  # bytes of a file whose size is not known beforehand
_SUMS = "SHA256SUMS"
_AGENT = "Mozilla/5.0 (compatible; bitext)"  # some hosts refuse the default name of Python

Say = Callable[[str], None]


def fetch(name: str, root: Path, *, listener: Say, program: Program = BITEXT) -> Path:
    """Fetch a corpus into a folder of its name below `root`; existing correct files are kept.

    `listener` is called with one line of text about each step. The result is the folder of the corpus; the note of
    its sources names `program`.

    Raises:
        UsageError: there is no corpus of this name.
        DataError: no mirror had the expected content, or it could not be written.
    """
    if name not in CORPORA:
        raise unknown_corpus(name, program)
    return _fetch_corpus(CORPORA[name], root, listener=listener, program=program)


def unknown_corpus(name: str, program: Program = BITEXT) -> UsageError:
    """Return the error for the name of an unknown corpus."""
    return UsageError(
        f'There is no corpus "{name}" to fetch. There are: {", ".join(CORPORA)}. '
        f"Others stand in public indexes: {program.line('fetch', '--source', 'ko', '--target', 'en')}."
    )


def _fetch_corpus(corpus: Corpus, root: Path, *, listener: Say, program: Program = BITEXT) -> Path:
    """Fetch a corpus described by the caller, as `fetch` does."""
    folder = root.expanduser() / corpus.name
    with os_errors(f"{folder} cannot be written", DataError):
        folder.mkdir(parents=True, exist_ok=True)
        listener(f"{corpus.name}: {corpus.description}. Terms: {corpus.terms}")
        for file in corpus.files:
            _fetch_file(file, corpus.mirrors, folder, listener)
        if corpus.sentences:
            listener(f"{corpus.name}: {unpack_sentences(folder, **corpus.sentences)}")
        _note_terms(corpus, folder, program)
    return folder


def _note_terms(corpus: Corpus, folder: Path, program: Program) -> None:
    """Write name and terms of a corpus beside its training text, for model cards."""
    texts = [path for path in folder.glob("train.*") if not path.name.endswith(ENDING)]
    source = TextSource(program.line("fetch", corpus.name), "text", {}, None, 0, corpus.terms, corpus.name)
    for path in set(map(sources_path, texts or [folder / file.name for file in corpus.files])):
        with suppress(OSError):  # a folder that is complete may be read-only
            write_sources(path, [source])


def _fetch_file(file: RemoteFile, mirrors: Iterable[str], folder: Path, say: Say) -> None:
    path = folder / file.name
    if _is_right(path, file, say):
        return
    failures = []
    for url in (mirror.format(name=file.name) for mirror in mirrors):
        try:
            sha256, size = _download(url, path, file)
        except _BadMirrorError as error:
            failures.append(f"{url}: {error}")
            say(f"{file.name}: {failures[-1]}")
            continue
        say(f"{path}: {size:,} bytes from {urlsplit(url).hostname}, SHA-256 {sha256}{_remark(file)}")
        if file.sha256 is None:
            _record_sum(folder, file.name, sha256)
        return
    raise DataError(
        "\n  ".join(
            [
                f"{file.name} could not be fetched. Fetch it in another way from one of these addresses, "
                f"put it at {path}, and run this again:",
                *failures,
            ]
        )
    )


def _is_right(path: Path, file: RemoteFile, say: Say) -> bool:
    """Return whether the file exists with the expected sum; if no sum is known, any file is accepted."""
    if not path.is_file():
        return False
    actual, expected = sum_of(path), file.sha256 or _recorded_sums(path.parent).get(file.name)
    if expected is None:
        _record_sum(path.parent, file.name, actual)
        say(f"{path} is there already, SHA-256 {actual}{_remark(file)}")
    elif actual == expected:
        say(f"{path} is there already, SHA-256 as expected")
    else:
        say(f"{path} is there, but {_wrong_sum(actual, expected)}; it is fetched anew")
    return expected in (None, actual)


class _BadMirrorError(Exception):
    """A mirror failed; the message says why."""


def _download(url: str, path: Path, file: RemoteFile) -> tuple[str, int]:
    """Fetch one address to a temporary name, check it, rename it; returns its SHA-256 and size.

    Raises:
        BadMirrorError: no answer, an error, or wrong content, which is deleted.
    """
    with locked_beside(path, DataError), replacing(path) as draft:
        size, digest = 0, hashlib.sha256()
        with draft.open("wb") as stream:
            for block in _receive(url, file.size or _MAX_BYTES):
                stream.write(block)
                digest.update(block)
                size += len(block)
        sha256 = digest.hexdigest()
        if file.sha256 and sha256 != file.sha256:
            raise _BadMirrorError(f"{_wrong_sum(sha256, file.sha256)}, {size:,} bytes; deleted")
    return sha256, size


def _receive(url: str, largest: int) -> Iterator[bytes]:
    """Yield the bytes of an address in blocks; network errors become `_BadMirrorError`."""
    size = 0
    try:
        with urlopen(Request(url, headers={"User-Agent": _AGENT}), timeout=_TIMEOUT) as answer:
            promised = answer.headers.get("Content-Length")
            while block := answer.read(1 << 16):
                size += len(block)
                if size > largest:
                    raise _BadMirrorError(f"more than the {largest:,} bytes expected")
                yield block
    except HTTPError as error:
        reason = f"HTTP {error.code} {error.reason}"
        error.close()
        raise _BadMirrorError(reason) from error
    except URLError as error:
        raise _BadMirrorError(str(error.reason)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _BadMirrorError(str(error) or type(error).__name__) from error
    if promised is not None and promised.isdecimal() and size < int(promised):
        raise _BadMirrorError(f"ended after {size:,} of {int(promised):,} bytes")


def _wrong_sum(actual: str, expected: str) -> str:
    return f"its SHA-256 is {actual}, not {expected}"


def _remark(file: RemoteFile) -> str:
    return "" if file.sha256 else f" (recorded in {_SUMS}: this file changes with time, so no right sum is known)"


def _recorded_sums(folder: Path) -> dict[str, str]:
    """Return the sums that earlier fetches recorded, by file name; the file has the format of `sha256sum`."""
    path = folder / _SUMS
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
    return {name: sha256 for sha256, _, name in (line.partition("  ") for line in lines) if name}


def _record_sum(folder: Path, name: str, sha256: str) -> None:
    sums = _recorded_sums(folder) | {name: sha256}
    text = "".join(f"{value}  {key}\n" for key, value in sorted(sums.items()))
    write_atomically(folder / _SUMS, text.encode())
