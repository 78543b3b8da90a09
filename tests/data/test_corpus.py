"""The splits of a configuration: their files, their limits, errors that name the settings."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bitext.errors import DataError
from bitext.pairs import Pair
from manyheads.config.schema import DataConfig
from manyheads.data.corpus import read_pairs

SHARED = Path(__file__).parents[3] / "shared" / "data"


def config(root: Path, **settings: Any) -> DataConfig:
    return DataConfig(root=str(root), source="de", target="en", **settings)


def write(folder: Path, **files: str) -> None:
    """Write files by name; the argument train_de names the file train.de."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content.encode(errors="surrogateescape"))


def texts(pairs: Any) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def test_a_split_is_two_files_named_by_language(tmp_path: Path) -> None:
    write(tmp_path, train_de="ein\nzwei\n", train_en="one\ntwo", train_fr="un\n")
    assert list(read_pairs(config(tmp_path), "train")) == [Pair("ein", "one", 1), Pair("zwei", "two", 2)]


def test_each_split_has_the_name_that_the_configuration_gives_it(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path, **{f"{name}_de": f"{name} de\n", f"{name}_en": f"{name} en\n"})
    named = config(tmp_path, train="c", valid="a", test="b")
    found = [texts(read_pairs(named, split)) for split in ("train", "valid", "test")]
    assert found == [[("c de", "c en")], [("a de", "a en")], [("b de", "b en")]]


def test_two_files_can_be_named_source_first_and_compressed_differently(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("ein\n")
    (tmp_path / "out.gz").write_bytes(gzip.compress(b"one\n"))
    assert texts(read_pairs(config(tmp_path, train=("in.txt", "out.gz")), "train")) == [("ein", "one")]


def test_paths_may_be_absolute_or_in_a_folder_below(tmp_path: Path) -> None:
    write(tmp_path / "sub", train_de="ein\n", train_en="one\n")
    for name in ("sub/train", str(tmp_path / "sub" / "train")):
        assert texts(read_pairs(config(tmp_path, train=name), "train")) == [("ein", "one")]


def test_the_plain_file_takes_precedence_over_the_compressed_one(tmp_path: Path) -> None:
    (tmp_path / "train.de.gz").write_bytes(gzip.compress(b"packed\n"))
    write(tmp_path, train_en="one\n")
    assert texts(read_pairs(config(tmp_path), "train")) == [("packed", "one")]
    write(tmp_path, train_de="plain\n")
    assert texts(read_pairs(config(tmp_path), "train")) == [("plain", "one")]


TWO = "train.de train.en"


@pytest.mark.parametrize(
    ("files", "settings", "split", "message"),
    [
        # "other" has one language only
        (f"{TWO} val.de val.en other.de", {}, "valid", r'valid\.en(?!.*other).*Use data\.valid = "val"\.'),
        (f"{TWO} dev.de dev.en", {}, "valid", r'Use data\.valid = "dev"\.'),
        (f"{TWO} validation.de validation.en", {}, "valid", r'Use data\.valid = "validation"\.'),
        (
            "sub/test_2016.de.gz sub/test_2016.en.gz", {"test": "sub/test"}, "test",
            r'Use data\.test = "sub/test_2016"',
        ),
        ("train.de train.ko", {}, "train", r"no file train\.en.* Of train there is: de, ko"),
        (
            "corpus.tsv", {"train": "corpsu.tsv"}, "train",
            r"no file .*corpsu\.tsv\. Near names there: corpus\.tsv",
        ),
        (
            "train.csv", {"train": "train.csv"}, "train",
            r"train\.csv is a file: a single one must be named \.tsv or \.jsonl",
        ),
        ("", tomllib.loads(r'root = "C:\new\table"'), "train",
         r'data\.root = "C:\\new\\table" is no folder.* single quotes'),
        ("", {"root": "nowhere"}, "train", r'data\.root = "nowhere" is no folder'),
        ("", {}, "train", "holds no files"),
        ("", {"root": "data/multi30k"}, "train", r"`manyheads data fetch multi30k --root data` gets it"),
        ("", {}, "test", r"data\.test is not set"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_files_of_a_split_is_named(
    tmp_path: Path, files: str, settings: dict[str, Any], split: Any, message: str
) -> None:
    for path in map(tmp_path.joinpath, files.split()):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(b"x\n") if path.suffix == ".gz" else b"x\n")
    with pytest.raises(DataError, match=message):
        read_pairs(config(tmp_path).model_copy(update=settings), split)


@pytest.mark.parametrize("limit", [29, 0.29])
def test_the_limit_is_for_train_alone(tmp_path: Path, limit: float) -> None:
    write(tmp_path, train_de="x\n" * 100, train_en="y\n" * 100)
    limited = config(tmp_path, valid="train", test="train", limit=limit)
    assert [len(list(read_pairs(limited, split))) for split in ("train", "valid", "test")] == [29, 100, 100]


@pytest.mark.skipif(not (SHARED / "multi30k").is_dir(), reason="needs ../shared/data")
def test_multi30k_is_read_with_its_known_counts() -> None:
    multi30k = config(SHARED / "multi30k", valid="val", test="test_2016_flickr")
    counts = [sum(1 for _ in read_pairs(multi30k, split)) for split in ("train", "valid", "test")]
    assert counts == [29_000, 1_014, 1_000]
    first = next(iter(read_pairs(multi30k, "train")))
    assert first.target == "Two young, White males are outside near many bushes."
