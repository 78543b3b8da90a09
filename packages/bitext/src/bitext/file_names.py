"""Read the names of files: splits, languages and compressions; list files with near names for messages."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from bitext.errors import DataError, UsageError
from bitext.files import is_stream
from bitext.languages import base_language
from bitext.lines import COMPRESSIONS

Split = Literal["train", "valid", "test"]
SINGLE_FILE_KINDS = (".tsv", ".jsonl")
_ENDINGS = ("", *COMPRESSIONS)
_SAME_SPLIT = (
    {"train", "trn", "training"},
    {"valid", "val", "dev", "devel", "development", "validation"},
    {"test", "tst", "eval", "evaluation"},
)
_CODE = "[a-z]{2,3}(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}|[0-9]{3}))*"  # zh, zho_Hans, zh_CN, es-419
_LANGUAGE = re.compile(f"[a-z]{{2,3}}([-_][A-Za-z0-9]{{2,8}})?|{_CODE}")
_DIRECTION = re.compile(f"(?:^|[^a-z])({_CODE})[-_]({_CODE})(?=[^a-z]|$)")
# Suffixes of file names that look like the code of a language.
_OTHER_SUFFIXES = {"bpe", "csv", "dat", "hyp", "md", "raw", "ref", "src", "sum", "tgt", "tok", "trg", "tsv", "txt"}
_LANGUAGE_CODE = re.compile("[a-zA-Z]{2,8}([-_][a-zA-Z0-9]{1,8})*")
_MAX_CODE = 100  # characters


def strip_compression(name: str) -> str:
    """Return a file name without the ending of its compression."""
    ending = next((ending for ending in COMPRESSIONS if name.endswith(ending)), "")
    return name.removesuffix(ending)


def existing(path: Path) -> Path | None:
    """Return the file of this name, else the compressed one, else None."""
    candidates = (path.parent / f"{path.name}{ending}" for ending in _ENDINGS)
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def no_file(path: Path) -> DataError:
    """Return the error for the path of a text that is no file."""
    if str(path) == "-" or is_stream(path):
        return DataError(f"{path} can be read only once, and is read twice. Save its text in a file.")
    return DataError(f"There is no file {path}. {near_names(path)}.")


def near_names(path: Path) -> str:
    """List, for a message, the files with names similar to a missing file, else the first files of its folder."""
    near = difflib.get_close_matches(path.name, file_names(path.parent), n=3, cutoff=0.5)
    return f"Near names there: {', '.join(near)}" if near else contents(path.parent)


def file_names(folder: Path) -> list[str]:
    """Return the sorted names of the files of a folder, without hidden ones; empty if there is no such folder."""
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def contents(folder: Path) -> str:
    """List the first files of a folder, for a message."""
    names = file_names(folder)
    if not names:
        return f"The folder {folder} {'holds no files' if folder.is_dir() else 'does not exist'}"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"The folder {folder} holds {', '.join(names[:8])}{more}"


def splits_of(root: Path, source: str, target: str) -> set[str]:
    """Return the splits that a folder holds in both languages."""
    names = {strip_compression(name) for name in file_names(root)}
    sources, targets = (
        {name.removesuffix(f".{language}") for name in names if name.endswith(f".{language}")}
        for language in (source, target)
    )
    return sources & targets


def best_match(split: str, present: Iterable[str]) -> str | None:
    """Return the split that was probably meant, such as val for valid, else the most similar name."""
    present = sorted(present)
    first = re.split(r"[._-]", split.lower())[0]
    group = next((names for names in _SAME_SPLIT if first in names), {first})
    alike = [name for name in present if re.split(r"[._-]", name.lower())[0] in group]
    return next(iter(alike or difflib.get_close_matches(split, present, n=1)), None)


def is_language(name: str) -> bool:
    """Return whether a part of a file name looks like the code of a language."""
    return _LANGUAGE.fullmatch(name) is not None and name not in _OTHER_SUFFIXES


def check_language(name: str) -> str:
    """Return the code of a language.

    Raises:
        UsageError: it has not the form of a code.
    """
    if len(name) > _MAX_CODE or not _LANGUAGE_CODE.fullmatch(name):
        raise UsageError(f'"{name}" is no language. Write a code such as de, or pt-BR.')
    return name


def languages_of_files(files: Sequence[Path]) -> tuple[str, str] | None:
    """Return the languages that the names of two files differ in, or that the name of one file holds."""
    if len(files) == 1:
        return direction_of(files[0], set())
    if len(files) != 2:
        return None
    first, second = (strip_compression(path.name).split(".") for path in files)
    if len(first) != len(second):
        return None
    different = [(part, other_part) for part, other_part in zip(first, second, strict=True) if part != other_part]
    if len(different) == 1 and all(map(is_language, different[0])):
        return different[0]
    return None


def direction_of(root: Path, languages: set[str]) -> tuple[str, str] | None:
    """Return the languages in the order of a name such as ko-en: the name of the folder, or of a file in it."""
    names = [root.resolve().name, *(file_names(root) if root.is_dir() else ())]
    pairs = {match.groups() for name in names for match in _DIRECTION.finditer(name)}
    pairs = {pair for pair in pairs if base_language(pair[0]) != base_language(pair[1])}  # zh_cn is one language
    fitting = [(first, second) for first, second in pairs if not languages or {first, second} == languages]
    return fitting[0] if len(fitting) == 1 else None
