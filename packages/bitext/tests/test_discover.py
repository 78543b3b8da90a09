"""The text in a folder is found by file names alone, and only if they are unambiguous."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitext.discover import find_text
from bitext.errors import DataError, UsageError


def write_files(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n", encoding="utf-8")
    return root


def test_text_with_splits_is_found_with_the_names_of_its_splits(tmp_path: Path) -> None:
    root = write_files(
        tmp_path / "ko-en", "train.ko.gz", "train.en", "dev.ko", "dev.en", "tst.ko", "tst.en", "README.md"
    )
    found = find_text(root)
    assert (found.source, found.target) == ("ko", "en")
    assert (found.splits, found.undivided) == ({"train": "train", "valid": "dev", "test": "tst"}, ())


@pytest.mark.parametrize(
    ("names", "undivided"),
    [
        (["corpus.de", "corpus.en"], ["corpus.de", "corpus.en"]),
        (["train.de.gz", "train.en.gz"], ["train.de.gz", "train.en.gz"]),
        (["train.de", "train.en", "test.de", "test.en"], ["train.de", "train.en"]),
        (["text.de.txt", "text.en.txt"], ["text.de.txt", "text.en.txt"]),
        (["corpus.tsv"], ["corpus.tsv"]),
        (["corpus.jsonl.gz", "notes.md"], ["corpus.jsonl.gz"]),
    ],
)
def test_text_without_splits_is_found(tmp_path: Path, names: list[str], undivided: list[str]) -> None:
    root = write_files(tmp_path / "text", *names)
    for source, target in (("de", "en"), ("en", "de")):
        found = find_text(root, source, target)
        assert sorted(path.name for path in found.undivided) == undivided
        if len(undivided) == 2:
            assert f".{source}" in found.undivided[0].name


def test_the_second_language_is_found_from_the_first(tmp_path: Path) -> None:
    root = write_files(tmp_path / "text", "corpus.de", "corpus.en")
    assert (find_text(root, source="en").target, find_text(root, target="en").source) == ("de", "de")


@pytest.mark.parametrize(("source", "target"), [("zh", "en"), ("zho_Hans", "eng"), ("ZH-cn", "en-US")])
def test_languages_are_asked_for_in_any_spelling(tmp_path: Path, source: str, target: str) -> None:
    found = find_text(write_files(tmp_path / "text", "corpus.zh_CN", "corpus.eng_Latn"), source, target)
    assert (found.source, found.target) == ("zh_CN", "eng_Latn")
    assert [path.name for path in found.undivided] == ["corpus.zh_CN", "corpus.eng_Latn"]


@pytest.mark.parametrize("name", ["de-en", "my-corpus_en-de", "news.en-de"])
def test_the_direction_is_read_from_the_name_of_the_folder(tmp_path: Path, name: str) -> None:
    found = find_text(write_files(tmp_path / name, "corpus.de", "corpus.en"))
    assert f"{found.source}-{found.target}" in name


def test_a_file_with_both_sides_may_be_given(tmp_path: Path) -> None:
    path = write_files(tmp_path, "corpus.tsv") / "corpus.tsv"
    assert find_text(path, "de", "en").undivided == (path,)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["corpus.de", "corpus.en"], "holds text in de and en. Say the direction: --source de or --source en."),
        (["a.de", "a.en", "a.fr"], r"languages are not clear \(its files name de, en, fr\)"),
        (["text.txt"], r"languages are not clear \(the names of its files tell none\)"),
    ],
)
def test_ambiguous_languages_are_an_error(tmp_path: Path, names: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_text(write_files(tmp_path / "text", *names))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], r"holds no train\.de and train\.en.*holds no files"),
        (["corpus.de"], r"holds no train\.de and train\.en.*holds corpus\.de\. Name the files"),
        (
            ["a.de", "a.en", "b.de", "b.en"],
            r"several texts: a\.de and a\.en, b\.de and b\.en.*bitext split \S*a\.de ",
        ),
    ],
)
def test_no_text_or_several_texts_are_an_error(tmp_path: Path, names: list[str], message: str) -> None:
    root = write_files(tmp_path / "text", *names)
    root.mkdir(exist_ok=True)
    with pytest.raises(DataError, match=message):
        find_text(root, "de", "en")


def test_a_path_that_is_no_folder_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, "corpus.de")
    for name in ("nowhere", "corpus.de"):
        with pytest.raises(DataError, match="is no folder"):
            find_text(tmp_path / name, "de", "en")
