"""Find the files of a split, or raise an error that names the existing files."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from manyheads.config.schema import DataConfig
from manyheads.data.catalogue import CORPORA
from manyheads.data.lines import COMPRESSIONS
from manyheads.errors import DataError
from manyheads.files import is_stream
from manyheads.shell import command_line

Split = Literal["train", "valid", "test"]
SINGLE_FILE_KINDS = (".tsv", ".jsonl")
_ENDINGS = ("", *COMPRESSIONS)
_SAME_SPLIT = (
    {"train", "trn", "training"},
    {"valid", "val", "dev", "devel", "development", "validation"},
    {"test", "tst", "eval", "evaluation"},
)


def split_setting(config: DataConfig, split: Split) -> str | tuple[str, str]:
    """Return the setting of a split, such as `data.train`; a share of train is in the file of train.

    Raises:
        DataError: the setting is empty, as `data.test` may be.
    """
    valid = config.train if isinstance(config.valid, float) else config.valid
    setting = {"train": config.train, "valid": valid, "test": config.test}[split]
    if setting is None:
        raise DataError(f"data.{split} is not set. Name the split or its files: --set data.{split}=NAME.")
    return setting


def _file_setting(config: DataConfig, split: Split) -> tuple[Path, str | tuple[str, str], Split]:
    """Return the folder of all text, the setting that names the files of a split, and the split of this setting.

    Where validation is a share of train, that is train.
    """
    named: Split = "train" if split == "valid" and isinstance(config.valid, float) else split
    return _root_of(config), split_setting(config, split), named


def locate(config: DataConfig, split: Split) -> tuple[Path, ...]:
    """Find the file or the two files (source, target) of a split.

    Raises:
        DataError: a file is missing; the message names the missing and the existing files.
    """
    root, setting, split = _file_setting(config, split)
    if not isinstance(setting, str):
        return tuple(_one_file(root / name, split) for name in setting)
    if strip_compression(setting).endswith(SINGLE_FILE_KINDS):
        return (_one_file(root / setting, split),)
    candidates = [existing(root / f"{setting}.{language}") for language in (config.source, config.target)]
    paths = tuple(path for path in candidates if path)
    if len(paths) < 2:
        raise DataError(_missing_split(root, setting, split, config))
    return paths


def locate_one(config: DataConfig, split: Split, endings: tuple[str, ...], *, need_ending: bool) -> tuple[Path]:
    """Find the one file of a split of a task other than translation: as named, or with an ending added.

    The setting may leave out one of `endings`, such as ".tsv". With `need_ending` the file must have one of them,
    because it determines the format.

    Raises:
        DataError: there is no such file, or the setting names two.
    """
    root, setting, split = _file_setting(config, split)
    if not isinstance(setting, str):
        raise DataError(f"data.{split} = {list(setting)}, but this task reads one file. Name one.")
    ended = strip_compression(setting).endswith(endings)
    names = [setting] if ended else [*([] if need_ending else [setting]), *(f"{setting}{end}" for end in endings)]
    file = next((path for name in names if (path := existing(root / name))), None)
    if file is not None:
        return (file,)
    if need_ending and not ended and existing(root / setting):
        raise DataError(f"{root / setting} must be named {' or '.join(endings)}, so that its layout is known.")
    return (_one_file(root / names[0], split),)  # raises an error that names existing files


def _root_of(config: DataConfig) -> Path:
    root = Path(config.root).expanduser()
    if not root.is_dir():
        fetch = command_line("manyheads", "data", "fetch", root.name, "--root", root.parent)
        cure = f"`{fetch}` gets it" if root.name in CORPORA else "Create it"
        shown = f'"{config.root}"'
        if not config.root.isprintable():
            shown, cure = (
                json.dumps(config.root, ensure_ascii=False),
                "In TOML, write a path with \\ in single quotes",
            )
        raise DataError(f"data.root = {shown} is no folder. {cure}, or name another: --set data.root=FOLDER.")
    return root


def strip_compression(name: str) -> str:
    """Return a file name without the ending of its compression."""
    ending = next((ending for ending in COMPRESSIONS if name.endswith(ending)), "")
    return name.removesuffix(ending)


def existing(path: Path) -> Path | None:
    """Return the file of this name, else the compressed one, else None."""
    candidates = (path.parent / f"{path.name}{ending}" for ending in _ENDINGS)
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _one_file(path: Path, split: Split) -> Path:
    file = existing(path)
    if file:
        return file
    if path.is_dir():
        raise DataError(
            f"data.{split}: {path} is a folder, and a file is read. Name one, and the others in data.more; or put "
            "all of them into one file."
        )
    share = " A share of train will do, too: data.valid = 0.1." if split == "valid" else ""
    raise DataError(f"data.{split}: there is no file {path}. {near_names(path)}.{share}")


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


def _missing_split(root: Path, setting: str, split: Split, config: DataConfig) -> str:
    folder, stem = (root / setting).parent, (root / setting).name
    endings = f"[{'|'.join(COMPRESSIONS)}]"
    absent = [
        f"{stem}.{language}{endings}"
        for language in (config.source, config.target)
        if not existing(folder / f"{stem}.{language}")
    ]
    head = f'data.{split} = "{setting}": {folder} holds no file {" and no file ".join(absent)}.'
    if (root / setting).is_file():
        return f"{head} {root / setting} is a file: a single one must be named .tsv or .jsonl."
    names = {strip_compression(name) for name in file_names(folder)}
    splits = splits_of(folder, config.source, config.target)
    if splits:
        match = best_match(stem, splits)
        use = str(Path(setting).with_name(match)) if match else ""
        cure = f' Use data.{split} = "{use}".' if match else ""
        return f"{head} Splits there: {', '.join(sorted(splits))}.{cure}"
    languages = sorted(name.removeprefix(f"{stem}.") for name in names if name.startswith(f"{stem}."))
    if languages:
        return f"{head} Of {stem} there is: {', '.join(languages)}. Set data.source and data.target."
    return f"{head} {contents(folder)}."


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
