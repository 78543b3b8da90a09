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


@pytest.mark.parametrize("existing", ["val", "dev", "validation"])
def test_an_error_on_a_missing_split_suggests_the_split_that_is_meant(tmp_path: Path, existing: str) -> None:
    files = {f"{name}_{language}": "x\n" for name in ("train", existing) for language in ("de", "en")}
    write(tmp_path, **files, other_de="x\n")
    with pytest.raises(DataError) as caught:
        read_pairs(config(tmp_path), "valid")
    message = str(caught.value)
    assert "valid.de" in message
    assert "valid.en" in message
    assert f'Use data.valid = "{existing}".' in message
    assert "other" not in message  # it has one language only


def test_a_suggested_split_keeps_its_folder_and_may_be_compressed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for language in ("de", "en"):
        (tmp_path / "sub" / f"test_2016.{language}.gz").write_bytes(gzip.compress(b"x\n"))
    with pytest.raises(DataError, match=r'Use data\.test = "sub/test_2016"'):
        read_pairs(config(tmp_path, test="sub/test"), "test")


def test_an_error_on_a_missing_language_lists_the_languages_present(tmp_path: Path) -> None:
    write(tmp_path, train_de="x\n", train_ko="x\n")
    with pytest.raises(DataError, match=r"no file train\.en.* Of train there is: de, ko"):
        read_pairs(config(tmp_path), "train")


def test_an_error_on_a_missing_file_suggests_a_similar_name(tmp_path: Path) -> None:
    write(tmp_path, corpus_tsv="a\tb\n")
    with pytest.raises(DataError, match=r"no file .*corpsu\.tsv\. Near names there: corpus\.tsv"):
        read_pairs(config(tmp_path, train="corpsu.tsv"), "train")


def test_a_single_file_of_another_format_is_refused_with_the_known_formats(tmp_path: Path) -> None:
    write(tmp_path, train_csv="a,b\n")
    with pytest.raises(DataError, match=r"train\.csv is a file: a single one must be named \.tsv or \.jsonl"):
        read_pairs(config(tmp_path, train="train.csv"), "train")


def test_a_path_whose_backslashes_toml_has_read_as_escapes_says_so(tmp_path: Path) -> None:
    values = tomllib.loads(r'root = "C:\new\table"')
    with pytest.raises(DataError, match=r'data\.root = "C:\\new\\table" is no folder.* single quotes'):
        read_pairs(config(tmp_path).model_copy(update=values), "train")


def test_a_missing_folder_and_an_empty_folder_have_different_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r'data\.root = ".*nowhere" is no folder'):
        read_pairs(config(tmp_path / "nowhere"), "train")
    with pytest.raises(DataError, match="holds no files"):
        read_pairs(config(tmp_path), "train")


def test_an_error_on_a_missing_public_corpus_names_the_command_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"`manyheads data fetch multi30k --root {tmp_path}` gets it"):
        read_pairs(config(tmp_path / "multi30k"), "train")


def test_a_split_that_is_not_configured_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.test is not set"):
        read_pairs(config(tmp_path), "test")


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (5, 5), (1000, 100), (0.29, 29), (0.001, 1), (0.999, 100)])
@pytest.mark.parametrize("layout", ["train", "c.tsv"])
def test_the_limit_is_a_count_or_a_share_of_train(tmp_path: Path, limit: float, expected: int, layout: str) -> None:
    write(tmp_path, train_de="x\n" * 100, train_en="y\n" * 100, c_tsv="x\ty\n" * 100)
    found = list(read_pairs(config(tmp_path, train=layout, limit=limit), "train"))
    assert [pair.line for pair in found] == list(range(1, expected + 1))
    held_out = config(tmp_path, valid=layout, test=layout, limit=limit)
    assert [len(list(read_pairs(held_out, split))) for split in ("valid", "test")] == [100, 100]


@pytest.mark.skipif(not (SHARED / "multi30k").is_dir(), reason="needs ../shared/data")
def test_multi30k_is_read_with_its_known_counts() -> None:
    multi30k = config(SHARED / "multi30k", valid="val", test="test_2016_flickr")
    counts = [sum(1 for _ in read_pairs(multi30k, split)) for split in ("train", "valid", "test")]
    assert counts == [29_000, 1_014, 1_000]
    first = next(iter(read_pairs(multi30k, "train")))
    assert first.target == "Two young, White males are outside near many bushes."
