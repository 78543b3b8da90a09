"""Divide the zip files of manythings.org/anki into splits that share no sentence."""

from __future__ import annotations

import hashlib
import io
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from bitext.errors import DataError
from bitext.file_names import Split
from bitext.lines import decode_lines
from bitext.placing import placing_files

_Sentences = list[tuple[str, str]]  # (English, the other language)

_MAX_UNPACKED_BYTES = 1 << 30  # bytes unpacked


def unpack_sentences(folder: Path, *, archive: str, member: str, language: str, one_in: int) -> str:
    """Write {train,valid,test}.{language} and .en from an archive; return a line with the size of each split.

    The text `member` has lines of English, tab, the other language, and maybe a tab and the authors. Only it and
    the terms are read, so that no other path in an archive is followed. About one in `one_in` pairs goes to valid,
    and one to test.

    Raises:
        DataError: the archive or its text is damaged or has another format.
    """
    path = folder / archive
    try:
        with zipfile.ZipFile(path) as opened:
            pairs = _read_sentences(opened, member, path)
            about = "_about.txt" in opened.namelist() and _read_member(opened, "_about.txt", path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(
            f"{path} is no zip file that can be read ({error}). Delete it and fetch it again."
        ) from error
    parts = _split_sentences(pairs, one_in)
    with placing_files(folder, archive) as draft:
        if about:
            (draft / "_about.txt").write_bytes(about)
        for part, chosen in parts.items():
            for side, ending in enumerate(("en", language)):
                text = "".join(f"{pair[side]}\n" for pair in chosen)
                (draft / f"{part}.{ending}").write_bytes(text.encode())
    sizes = ", ".join(f"{part} {len(chosen):,}" for part, chosen in parts.items())
    return f"{len(pairs):,} pairs in {member}; written without duplicates: {sizes}"


def _read_member(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    """Read one member, unless it is too large when unpacked."""
    if name not in archive.namelist():
        raise DataError(f"{path} holds no {name}; it holds {', '.join(archive.namelist()[:8])}. Fetch it again.")
    with archive.open(name) as stream:
        content = stream.read(_MAX_UNPACKED_BYTES + 1)
    if len(content) > _MAX_UNPACKED_BYTES:
        raise DataError(
            f"{path}: {name} has more than {_MAX_UNPACKED_BYTES:,} bytes, so this is not the corpus. Delete it."
        )
    return content


def _read_sentences(archive: zipfile.ZipFile, member: str, path: Path) -> _Sentences:
    name = f"{path}, {member}"
    text = io.BytesIO(_read_member(archive, member, path))
    pairs = []
    for number, line in enumerate(decode_lines(text, name), start=1):
        columns = line.text.split("\t")
        if len(columns) < 2:
            raise DataError(f"{name}, line {number}: no tab between two languages. Fetch the file again.")
        pairs.append((" ".join(columns[0].split()), " ".join(columns[1].split())))
    return pairs


def _fold(text: str) -> str:
    """Return the key of equal sentences: letters and digits, compatibility forms and case folded."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _part_of(english: str, one_in: int) -> Split:
    """Return the split of a sentence by its SHA-256: the same in every version of the file."""
    number = int(hashlib.sha256(english.encode()).hexdigest()[:8], 16) % one_in
    return "valid" if number == 0 else "test" if number == 1 else "train"


def _split_sentences(pairs: Iterable[tuple[str, str]], one_in: int) -> dict[Split, _Sentences]:
    """Divide pairs by the English sentence, so that all its translations are in one split.

    Pairs with equal keys are kept once. A pair of train is left out if its foreign sentence occurs in valid
    or test, and a pair of valid if it occurs in test.
    """
    parts: dict[Split, dict[tuple[str, str], tuple[str, str]]] = {"train": {}, "valid": {}, "test": {}}
    for pair in pairs:
        key = _fold(pair[0]), _fold(pair[1])
        if all(key):
            parts[_part_of(key[0], one_in)].setdefault(key, pair)
    test = {foreign for _, foreign in parts["test"]}
    held_out = test | {foreign for _, foreign in parts["valid"]}
    return {
        "train": [pair for key, pair in parts["train"].items() if key[1] not in held_out],
        "valid": [pair for key, pair in parts["valid"].items() if key[1] not in test],
        "test": list(parts["test"].values()),
    }
