"""Find the files of a split, or raise an error that names the existing files."""

from __future__ import annotations

import json
from pathlib import Path

from bitext.catalogue import CORPORA
from bitext.file_names import (
    SINGLE_FILE_KINDS,
    Split,
    best_match,
    contents,
    existing,
    file_names,
    near_names,
    splits_of,
    strip_compression,
)
from bitext.lines import COMPRESSIONS
from bitext.shell import command_line
from manyheads.config.schema import DataConfig
from manyheads.errors import DataError


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
