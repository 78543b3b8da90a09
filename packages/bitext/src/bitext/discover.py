"""Find the parallel text in a folder of any layout: its languages, its splits, and text that is not divided yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bitext.errors import DataError, UsageError
from bitext.file_names import (
    SINGLE_FILE_KINDS,
    Split,
    best_match,
    check_language,
    contents,
    direction_of,
    existing,
    file_names,
    is_language,
    languages_of_files,
    splits_of,
    strip_compression,
)
from bitext.languages import match_language
from bitext.program import BITEXT, Program


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


def find_text(
    root: Path, source: str | None = None, target: str | None = None, program: Program = BITEXT
) -> FoundText:
    """Find the text that `root` holds: a folder, or a .tsv or .jsonl file.

    A language that is None is taken from the names of folder and files. Messages name a command of `program`.

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
        raise DataError(_no_single_text(root, known, texts, program))
    return FoundText(*known, splits, texts[0])


def _no_single_text(
    root: Path, languages: tuple[str, str], texts: Sequence[tuple[Path, ...]], program: Program
) -> str:
    source, target = languages
    if not texts:
        return (
            f"{root} holds no train.{source} and train.{target}; in both languages there is: nothing. "
            f"{contents(root)}. Name the files by their languages, such as corpus.{source} and corpus.{target}."
        )
    listed = ", ".join(" and ".join(path.name for path in text) for text in texts[:4])
    first = program.line("split", *texts[0])
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
    direction = direction_of(root, present)
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
