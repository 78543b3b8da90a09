"""Parallel text from two files, .tsv and .jsonl: layouts and errors (FAULTS rows 1, 2, 5 to 8)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bitext.errors import DataError
from bitext.pairs import TextFiles, read_pairs


def text(folder: Path, *names: str, **settings: Any) -> TextFiles:
    """Return the files of a folder, by default train.de and train.en."""
    return TextFiles(tuple(folder / name for name in names or ("train.de", "train.en")), "de", "en", **settings)


def write(folder: Path, **files: str) -> None:
    """Write files by name; the argument train_de names the file train.de."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content.encode(errors="surrogateescape"))


def texts(pairs: Any) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


@pytest.mark.parametrize(("longer", "more"), [("de", 3), ("en", 7)])
@pytest.mark.parametrize("limit", [None, 1, 0.5])
def test_files_of_different_length_are_refused_with_both_counts(
    tmp_path: Path, longer: str, more: int, limit: float | None
) -> None:
    counts = {"de": 2, "en": 2} | {longer: 2 + more}
    write(tmp_path, **{f"train_{language}": "x\n" * count for language, count in counts.items()})
    with pytest.raises(DataError) as caught:
        list(read_pairs(text(tmp_path), limit))
    for language, count in counts.items():
        assert f"train.{language} has {count} lines" in str(caught.value)


@pytest.mark.parametrize("name", ["c.tsv", "c.jsonl", "c.tsv.gz", "c.jsonl.gz"])
def test_one_file_can_hold_both_languages(tmp_path: Path, name: str) -> None:
    rows = [("eins", "one"), ("", ""), ("zwei\u2028", "two")]
    lines = [json.dumps({"de": s, "en": t}) if "json" in name else f"{s}\t{t}" for s, t in rows]
    content = ("\r\n".join(lines) + "\n").encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert texts(read_pairs(text(tmp_path, name))) == rows


@pytest.mark.parametrize("name", ["c.tsv", "c.jsonl"])
def test_a_blank_line_in_a_file_of_pairs_is_an_empty_pair(tmp_path: Path, name: str) -> None:
    line = "a\tb\n" if name == "c.tsv" else '{"de": "a", "en": "b"}\n'
    write(tmp_path, **{name.replace(".", "_"): f"{line}\n  \n"})
    found = list(read_pairs(text(tmp_path, name)))
    assert texts(found) == [("a", "b"), ("", ""), ("", "")]


@pytest.mark.parametrize(("line", "found"), [("no tab", "no tab"), ("a\tb\tc", "2 tabs"), ("a\tb\t", "2 tabs")])
def test_a_line_of_tsv_without_exactly_one_tab_is_named(tmp_path: Path, line: str, found: str) -> None:
    write(tmp_path, c_tsv=f"a\tb\n\n{line}\n")
    with pytest.raises(DataError, match=rf"c\.tsv, line 3: {found}\. Each line must be source<TAB>target"):
        list(read_pairs(text(tmp_path, "c.tsv")))


@pytest.mark.parametrize(
    "record",
    [
        {"de": "ein", "en": "one", "source": "wrong", "target": "wrong"},
        {"source": "ein", "target": "one", "en": "half"},
        {"id": 3, "translation": {"de": "ein", "en": "one", "fr": "un"}},
        {"deu_Latn": "ein", "en-US": "one", "fr": "un"},
    ],
)
def test_a_json_object_names_its_texts_by_language_or_by_side(tmp_path: Path, record: dict[str, Any]) -> None:
    write(tmp_path, c_jsonl=json.dumps(record))
    assert texts(read_pairs(text(tmp_path, "c.jsonl"))) == [("ein", "one")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"de": "a", "en": }', r"no JSON \(.*column 19"),
        ('["a", "b"]', "list in place of an object"),
        ('{"translation": "a"}', 'no keys "de" and "en".*It has: translation'),
        ('{"de": "a", "fr": "b"}', 'no keys "de" and "en".*It has: de, fr'),
        ('{"de": "a", "en": 7}', '"en" holds int, not text'),
        ('{"de": "a", "en": null}', '"en" holds NoneType, not text'),
        ('{"de": "\\ud800", "en": "b"}', '"de" holds half a surrogate pair'),
        ("[" * 100_000, "no JSON"),
        ('{"de": ' + "1" * 10_000 + "}", "no JSON"),
    ],
)
def test_a_mistake_in_json_is_named_by_line(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path, c_jsonl='{"de": "a", "en": "b"}\n' + line + "\n")
    with pytest.raises(DataError, match=rf"c\.jsonl, line 2: .*{message}"):
        list(read_pairs(text(tmp_path, "c.jsonl")))


def test_half_a_surrogate_pair_is_replaced_on_request(tmp_path: Path) -> None:
    write(tmp_path, c_jsonl='{"de": "a\\ud800b", "en": "\\ud83d\\ude00"}')
    found = list(read_pairs(text(tmp_path, "c.jsonl", invalid_utf8="replace")))
    assert texts(found) == [("a\ufffdb", "\U0001f600")]


def test_replaced_bytes_of_both_sides_are_counted(tmp_path: Path) -> None:
    write(tmp_path, train_de="f\udcfcr\nb\n", train_en="x\udcff\udcfe\nx\ufffd\n")
    with pytest.raises(DataError, match=r"train\.de, line 1"):
        list(read_pairs(text(tmp_path)))
    found = list(read_pairs(text(tmp_path, invalid_utf8="replace")))
    assert [pair.replaced for pair in found] == [3, 0]


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (5, 5), (1000, 100), (0.29, 29), (0.001, 1), (0.999, 100)])
@pytest.mark.parametrize("layout", [("train.de", "train.en"), ("c.tsv",)])
def test_the_limit_is_a_count_or_a_share(
    tmp_path: Path, limit: float, expected: int, layout: tuple[str, ...]
) -> None:
    write(tmp_path, train_de="x\n" * 100, train_en="y\n" * 100, c_tsv="x\ty\n" * 100)
    found = list(read_pairs(text(tmp_path, *layout), limit))
    assert [pair.line for pair in found] == list(range(1, expected + 1))


@pytest.mark.parametrize("layout", [("train.de", "train.en"), ("c.tsv",)])
def test_files_without_a_line_are_refused(tmp_path: Path, layout: tuple[str, ...]) -> None:
    write(tmp_path, train_de="", train_en="", c_tsv="\ufeff"[:0])
    with pytest.raises(DataError, match=r"(train\.de and .*train\.en|c\.tsv): no lines"):
        list(read_pairs(text(tmp_path, *layout)))
