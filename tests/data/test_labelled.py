"""Texts with labels from TSV and JSONL, and plain text: reading, splitting and error messages."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bitext.filtering import FilterCounts, PairFilter
from bitext.pairs import Pair
from manyheads.config.schema import DataConfig
from manyheads.data.labelled import read_labelled
from manyheads.data.reading import READINGS, _read_documents
from manyheads.errors import DataError
from manyheads.text.joined_texts import split_texts


def config(root: Path, **settings: Any) -> DataConfig:
    return DataConfig(root=str(root), language="en", **settings)


def rows(pairs: Any) -> list[tuple[str, str]]:
    return [(pair.target, pair.source) for pair in pairs]


def write(root: Path, name: str, text: str) -> None:
    (root / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())


@pytest.mark.parametrize("name", ["train.tsv", "train.tsv.gz"])
@pytest.mark.parametrize("setting", ["train", "train.tsv"])
def test_a_line_is_a_label_and_a_text(tmp_path: Path, name: str, setting: str) -> None:
    write(tmp_path, name, '1\tgood\nvery bad\tno, "never"\n\n0\tx\n')
    found = list(read_labelled(config(tmp_path, train=setting), "train"))
    assert rows(found) == [("1", "good"), ("very bad", 'no, "never"'), ("", ""), ("0", "x")]
    assert [pair.line for pair in found] == [1, 2, 3, 4]


def test_two_texts_of_a_line_stay_separate(tmp_path: Path) -> None:
    write(tmp_path, "train.tsv", "yes\ta dog\tan animal\n")
    (pair,) = read_labelled(config(tmp_path), "train")
    assert (pair.target, split_texts(pair.source)) == ("yes", ["a dog", "an animal"])


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"label": 1, "text": "a"}, ("1", ["a"])),
        ({"label": 0.5, "sentence": "a", "other": 3}, ("0.5", ["a"])),
        ({"label": True, "text": "a\tb", "text2": "c"}, ("true", ["a b", "c"])),
        ({"label": "x y", "sentence1": "a", "sentence2": "c"}, ("x y", ["a", "c"])),
    ],
)
def test_a_line_of_json_holds_a_label_and_texts_by_their_usual_names(
    tmp_path: Path, record: dict[str, Any], expected: tuple[str, list[str]]
) -> None:
    write(tmp_path, "train.jsonl", json.dumps(record) + "\n")
    (pair,) = read_labelled(config(tmp_path, train="train.jsonl"), "train")
    assert (pair.target, split_texts(pair.source)) == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.tsv", "1\ta\nno tab here\n", r"t\.tsv, line 2: no tab\. Each line must be label<TAB>text"),
        ("t.tsv", "1\ta\tb\tc\n", r"line 1: 3 tabs"),
        ("t.tsv", "1\ta\n\tb\n", r"line 2: there is no label before the first tab"),
        ("t.tsv", "Label\tText\n1\ta\n", r'line 1: "Label<TAB>Text" names columns.* Delete that line'),
        ("t.tsv", "sentence\tlabel\na\t1\n", r'line 1: "sentence<TAB>label" names columns'),
        ("t.tsv", "", r"t\.tsv: no lines"),
        ("t.jsonl", '{"label": 1}\n', r'line 1: an object needs "label" and "text".* It has: label\.'),
        ("t.jsonl", '{"text": "x"}\n', r'needs "label"'),
        ("t.jsonl", '{"label": " ", "text": "x"}\n', r'line 1: "label" is empty'),
        ("t.jsonl", '{"label": [1], "text": "x"}\n', r'"label" holds list, not text'),
        ("t.jsonl", "[1]\n", r"line 1: list in place of an object"),
        ("t.jsonl", "{\n", r"line 1: no JSON"),
    ],
)
def test_an_unreadable_line_is_named_by_file_and_number(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path, name, text)
    with pytest.raises(DataError, match=message):
        list(read_labelled(config(tmp_path, train=name), "train"))


def test_only_a_first_line_of_nothing_but_names_is_a_header(tmp_path: Path) -> None:
    write(tmp_path, "train.tsv", "label\ttext\tof a class\nlabel\ttext\n")
    found = list(read_labelled(config(tmp_path), "train"))
    assert rows(found) == [("label", "text\tof a class"), ("label", "text")]


def test_a_missing_or_wrongly_named_file_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "train.csv", "1,a\n")
    with pytest.raises(DataError, match=r"train\.csv must be named \.tsv or \.jsonl"):
        read_labelled(config(tmp_path, train="train.csv"), "train")
    with pytest.raises(DataError, match=r"there is no file .*train\.tsv.*train\.csv"):
        read_labelled(config(tmp_path), "train")
    with pytest.raises(DataError, match=r"there is no file .*valid\.tsv.* A share of train will do, too"):
        read_labelled(config(tmp_path), "valid")
    (tmp_path / "texts").mkdir()
    with pytest.raises(DataError, match=r"data\.train: .*texts is a folder, and a file is read\. .*data\.more"):
        _read_documents(config(tmp_path, train="texts", valid=0.1), "valid")  # a share of train is in its file
    with pytest.raises(DataError, match=r"this task reads one file"):
        read_labelled(config(tmp_path, train=("a", "b")), "train")


@pytest.mark.parametrize("read", [read_labelled, _read_documents])
@pytest.mark.parametrize(
    ("share", "limit", "train", "valid"),
    [
        (0.25, None, [1, 2, 3, 4, 5, 6], [7, 8]),
        (0.001, None, [1, 2, 3, 4, 5, 6, 7], [8]),
        (0.999, None, [1], [2, 3, 4, 5, 6, 7, 8]),
        (0.25, 3, [1, 2, 3], [7, 8]),
        (0.25, 0.5, [1, 2, 3], [7, 8]),
        (0.25, 100, [1, 2, 3, 4, 5, 6], [7, 8]),
    ],
)
def test_a_validation_share_is_the_end_of_train_and_is_removed_from_train(
    tmp_path: Path, read: Any, share: float, limit: float | None, train: list[int], valid: list[int]
) -> None:
    write(tmp_path, "train.tsv", "".join(f"1\tline {number}\n" for number in range(8)))
    settings = config(tmp_path, train="train.tsv", valid=share, limit=limit)
    assert [pair.line for pair in read(settings, "train")] == train
    assert [pair.line for pair in read(settings, "valid")] == valid


@pytest.mark.parametrize(("limit", "count"), [(None, 8), (3, 3), (0.5, 4)])
def test_a_limit_applies_to_train_alone(tmp_path: Path, limit: float | None, count: int) -> None:
    for split in ("train", "valid"):
        write(tmp_path, f"{split}.tsv", "".join(f"1\tline {number}\n" for number in range(8)))
    settings = config(tmp_path, limit=limit)
    assert len(list(read_labelled(settings, "train"))) == count
    assert len(list(read_labelled(settings, "valid"))) == 8


@pytest.mark.parametrize(("name", "setting"), [("some.book", "some.book"), ("t.txt.gz", "t"), ("t.txt", "t.txt")])
def test_plain_text_may_have_any_name(tmp_path: Path, name: str, setting: str) -> None:
    write(tmp_path, name, "a\n\n b\tc\n")
    found = list(_read_documents(config(tmp_path, train=setting), "train"))
    assert found == [Pair("", "a", 1), Pair("", "", 2), Pair("", " b\tc", 3)]


def test_filters_that_do_not_fit_a_task_are_off() -> None:
    """A label is much shorter than its text, and plain text has one side only."""
    settings = DataConfig(language="en", max_ratio=2)
    labelled = [Pair("x" * 99, "1", 1), Pair("x" * 99, "1", 2), Pair("", "1", 3), Pair("held", "0", 4)]
    judge = PairFilter(READINGS["labelled"].rules(settings), str.strip, [Pair("held", "1", 1)])
    assert [pair.line for pair in judge.used(labelled)] == [1, 4]
    assert judge.counts == FilterCounts(read=4, duplicate=1, empty=1, source_overlap=1)
    assert judge.counts.describe("examples", "label").endswith("1 source also held out with another label")
    plain = [Pair("", "a", 1), Pair("", "a", 2), Pair("", " ", 3), Pair("", "held", 4)]
    judge = PairFilter(READINGS["documents"].rules(settings), str.strip, [Pair("", "held", 1)])
    assert [pair.line for pair in judge.used(plain)] == [1]
    assert judge.counts == FilterCounts(read=4, duplicate=1, empty=1, overlap=1)
