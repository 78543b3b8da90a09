"""Find the parallel text in a folder of any layout: its languages, its splits, and text that is not divided yet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.config.schema import DataConfig
from manyheads.data.locate import (
    SINGLE_FILE_KINDS,
    Split,
    best_match,
    contents,
    existing,
    file_names,
    splits_of,
    strip_compression,
)
from manyheads.errors import DataError, UsageError
from manyheads.languages import base_language, match_language
from manyheads.shell import command_line

_CODE = "[a-z]{2,3}(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}|[0-9]{3}))*"  # zh, zho_Hans, zh_CN, es-419
_LANGUAGE = re.compile(f"[a-z]{{2,3}}([-_][A-Za-z0-9]{{2,8}})?|{_CODE}")
_DIRECTION = re.compile(f"(?:^|[^a-z])({_CODE})[-_]({_CODE})(?=[^a-z]|$)")
# Suffixes of file names that look like the code of a language.
_OTHER_SUFFIXES = {"bpe", "csv", "dat", "hyp", "md", "raw", "ref", "src", "sum", "tgt", "tok", "trg", "tsv", "txt"}


@dataclass(frozen=True)
class FoundText:
    """Parallel text of a folder.

    Attributes:
        source, target: the languages.
        splits: names of the splits present in both languages, by their role.
        undivided: files of a text that must be divided first; empty if train and valid exist.
    """

    source: str
    target: str
    splits: dict[Split, str]
    undivided: tuple[Path, ...]


def find_text(root: Path, source: str | None = None, target: str | None = None) -> FoundText:
    """Find the text that `root` holds: a folder, or a .tsv or .jsonl file.

    A language that is None is taken from the names of folder and files.

    Raises:
        DataError: there is no parallel text, or more than one text that is not divided.
        UsageError: the names do not show the languages, or which of them is the source.
    """
    if _is_single(root):
        return FoundText(*_languages_from_names(root, set(), source, target), {}, (root,))
    if not root.is_dir():
        end = " Or name one .tsv or .jsonl file." if root.is_file() else ""
        raise DataError(f"{root} is no folder. Give the folder that holds the text.{end}")
    files = [root / name for name in file_names(root)]
    known = _languages_from_names(root, _languages_of_folder(files), source, target)
    present = splits_of(root, *known)
    names: tuple[Split, ...] = ("train", "valid", "test")
    splits: dict[Split, str] = {split: name for split in names if (name := best_match(split, present))}
    if "train" in splits and "valid" in splits:
        return FoundText(*known, splits, ())
    stems = [splits["train"]] if "train" in splits else sorted(present - set(splits.values()))
    texts = [tuple(path for language in known if (path := existing(root / f"{stem}.{language}"))) for stem in stems]
    texts = texts or [(path,) for path in files if _is_single(path)]
    if not texts and len(files) == 2 and languages_of_files(files):
        texts = [tuple(files) if languages_of_files(files) == known else (files[1], files[0])]
    if len(texts) != 1:
        raise DataError(_no_single_text(root, known, texts))
    return FoundText(*known, splits, texts[0])


def _no_single_text(root: Path, languages: tuple[str, str], texts: Sequence[tuple[Path, ...]]) -> str:
    source, target = languages
    if not texts:
        return (
            f"{root} holds no train.{source} and train.{target}; in both languages there is: nothing. "
            f"{contents(root)}. Name the files by their languages, such as corpus.{source} and corpus.{target}."
        )
    listed = ", ".join(" and ".join(path.name for path in text) for text in texts[:4])
    first = command_line("manyheads", "data", "split", *texts[0])
    return (
        f"{root} holds no train and valid, but several texts: {listed}. Join them to one, "
        f"or divide one of them: {first}"
    )


def _is_single(path: Path) -> bool:
    """Return whether a path is one file with both sides."""
    return path.is_file() and strip_compression(path.name).endswith(SINGLE_FILE_KINDS)


def _languages_from_names(root: Path, present: set[str], source: str | None, target: str | None) -> tuple[str, str]:
    """Return source and target: as given, otherwise from the names of files and folders, such as ko-en.

    Raises:
        UsageError: a language, or the direction, is not known.
    """
    source, target = (code and (match_language(code, sorted(present)) or code) for code in (source, target))
    if source and target:
        return check_language(source), check_language(target)
    direction = _direction_of(root, present)
    languages = present or set(direction or ())
    others = languages - {source, target}
    if (source or target) and len(others) == 1:
        (other,) = others
        return (source, other) if source else (other, target or "")
    if not (source or target) and direction:
        return direction
    if not (source or target) and len(languages) == 2:
        first, second = sorted(languages)
        raise UsageError(
            f"{root} holds text in {first} and {second}. Say the direction: --source {first} or --source {second}."
        )
    seen = f"its files name {', '.join(sorted(languages))}" if languages else "the names of its files tell none"
    raise UsageError(f"{root}: the languages are not clear ({seen}). Say both: --source de --target en.")


def check_language(name: str) -> str:
    """Return the name of a language.

    Raises:
        UsageError: a configuration cannot hold the name.
    """
    try:
        DataConfig(source=name)
    except ValueError as error:
        raise UsageError(f'"{name}" is no language. Write a code such as de, or pt-BR.') from error
    return name


def _direction_of(root: Path, languages: set[str]) -> tuple[str, str] | None:
    """Return the languages in the order of a name such as ko-en: the name of the folder, or of a file in it."""
    names = [root.resolve().name, *(file_names(root) if root.is_dir() else ())]
    pairs = {match.groups() for name in names for match in _DIRECTION.finditer(name)}
    pairs = {pair for pair in pairs if base_language(pair[0]) != base_language(pair[1])}  # zh_cn is one language
    fitting = [(first, second) for first, second in pairs if not languages or {first, second} == languages]
    return fitting[0] if len(fitting) == 1 else None


def _languages_of_folder(files: Sequence[Path]) -> set[str]:
    """Return the languages in which files of the same name exist: of train if present, otherwise of all texts."""
    endings: dict[str, set[str]] = {}
    for path in files:
        stem, _, ending = strip_compression(path.name).rpartition(".")
        if stem and is_language(ending):
            endings.setdefault(stem, set()).add(ending)
    endings = {stem: languages for stem, languages in endings.items() if len(languages) > 1}
    train = best_match("train", endings)
    if train is not None:
        return endings[train]
    return set().union(*endings.values()) or set(languages_of_files(files) or ())


def languages_of_files(files: Sequence[Path]) -> tuple[str, str] | None:
    """Return the languages that the names of two files differ in, or that the name of one file holds."""
    if len(files) == 1:
        return _direction_of(files[0], set())
    if len(files) != 2:
        return None
    first, second = (strip_compression(path.name).split(".") for path in files)
    if len(first) != len(second):
        return None
    different = [(part, other_part) for part, other_part in zip(first, second, strict=True) if part != other_part]
    if len(different) == 1 and all(map(is_language, different[0])):
        return different[0]
    return None


def is_language(name: str) -> bool:
    """Return whether a part of a file name looks like the code of a language."""
    return _LANGUAGE.fullmatch(name) is not None and name not in _OTHER_SUFFIXES
