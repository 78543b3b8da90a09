"""List and fetch corpora of the public indexes (OPUS, Statmt, ELRC and others) by the program `mtdata`.

mtdata requires older versions of rich and portalocker than other programs need. So it is run as a program,
which may be installed in a separate environment. Its index is part of its package; only fetching needs the network.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bitext.convert import ConvertOptions, ConvertResult, convert_files
from bitext.errors import DataError, MissingExtraError, UsageError
from bitext.formats.moses import notes_of_archive
from bitext.formats.text import TextRequest
from bitext.program import BITEXT, Program

# GROUP-NAME-VERSION-LANGUAGE-LANGUAGE, such as OPUS-tatoeba-v20230412-eng-kor
_CORPUS_NAME = re.compile(r"[^-\s]+-[^-\s]+-[^-\s]+-([A-Za-z_]+)-([A-Za-z_]+)")


@dataclass(frozen=True)
class IndexEntry:
    """A corpus of a public index: its name and its address."""

    name: str
    url: str


def is_entry_name(name: str) -> bool:
    """Return whether a name has the form of the names of mtdata."""
    return _CORPUS_NAME.fullmatch(name) is not None


def find_entries(source: str, target: str, words: str = "", *options: str) -> list[IndexEntry]:
    """Return the corpora of two languages, in either direction, whose names hold all words, in any case.

    `options` are further options of `mtdata list`.
    """
    listed = _run_mtdata("list", "-l", f"{source}-{target}", *options)
    rows = [line.split("\t") for line in listed.split("\n") if "\t" in line]
    entries = [IndexEntry(row[0], row[1]) for row in rows]
    return [entry for entry in entries if all(word in entry.name.lower() for word in words.lower().split())]


def fetch_entry(
    name: str,
    root: Path,
    languages: tuple[str, str] | None = None,
    listener: Callable[[str], None] = lambda text: None,
    program: Program = BITEXT,
) -> ConvertResult:
    """Fetch a corpus, and write it as `convert_files` does into a folder of its name below `root`.

    The files have the codes of `languages`, source and target, by default those in the name. `listener` is called
    with one line of text about each step; the note of the sources names `program`.

    Raises:
        UsageError: the name is not in the index for these languages.
        MissingExtraError: there is no program mtdata.
        DataError: the corpus could not be fetched, or was fetched already.
    """
    match = _CORPUS_NAME.fullmatch(name)
    codes = (match[1], match[2]) if match else ("", "")
    source, target = languages or codes
    urls = {entry.name: entry.url for entry in find_entries(source, target)}
    if name not in urls:
        listing = program.line("fetch", "--source", source, "--target", target)
        raise UsageError(f"{name} is not in the index for {source} and {target}. List it: {listing}")
    if languages and all(entry.name != name for entry in find_entries(source, target, "", "--strict")):
        source, target = target, source  # now in the order of the name
    listener(f"{name}: fetching {urls[name]} with mtdata")
    with tempfile.TemporaryDirectory() as folder:
        _run_mtdata("get", "-l", "-".join(codes), "-tr", name, "--no-merge", "--fail", "-o", folder)
        paths = []
        for code, language in zip(codes, (source, target), strict=True):
            part = Path(folder) / "train-parts" / f"{name}.{code}"
            if not part.is_file():
                raise DataError(
                    f"{name}: mtdata has written no text in {code} from {urls[name]}. Try it again later."
                )
            paths.append(part.rename(part.with_name(f"{name}.{language}")))
        request = TextRequest(*(languages or codes))
        options = ConvertOptions(name, request, _licence_in_cache(urls[name]), urls[name], program=program)
        return convert_files([str(path) for path in paths], root.expanduser() / name, options)


def _licence_in_cache(url: str) -> str | None:
    """Return the licence that a fetched archive states, if mtdata has kept it; its index knows none."""
    cache = Path(os.environ.get("MTDATA", "~/.mtdata")).expanduser()
    key = hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()
    archives = (cache / (urlsplit(url).hostname or "") / key[:4] / key[4:]).glob("*.zip")
    return next((notes_of_archive(path)[0] for path in archives), None)


def _run_mtdata(*arguments: str) -> str:
    """Run mtdata and return its output.

    Raises:
        MissingExtraError: there is no such program.
        DataError: mtdata failed; the message holds its last line.
    """
    program = shutil.which("mtdata", path=str(Path(sys.executable).parent)) or shutil.which("mtdata")
    if program is None:
        raise MissingExtraError(
            "Public indexes need the program mtdata, which is not installed. Install it in an environment of its "
            'own: pipx install mtdata. Or in this one: pip install "bitext[mtdata]"'
        )
    wide = os.environ | {"COLUMNS": "2000"}  # messages are not wrapped
    completed = subprocess.run(
        [program, "--no-pbar", *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=wide, check=False
    )
    if completed.returncode:
        lines = [line.strip() for line in completed.stderr.decode(errors="replace").split("\n") if line.strip()]
        last = lines[-1][:400] if lines else f"exit code {completed.returncode}"
        network = any(sign in last for sign in ("ConnectionError", "Timeout", "HTTPError", "URLError"))
        cure = " Is there a network? Files that were fetched are kept, so run it again." if network else ""
        raise DataError(f"mtdata {arguments[0]} fails: {last.removesuffix('.')}.{cure}")
    return completed.stdout.decode(errors="replace")
