"""The program bitext cleans and reports on plain files; a user's mistake is one line with its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import bitext
from bitext.cli import run
from bitext.files import cure_of
from bitext.lines import read_lines
from dirty_pairs import pairs_with_defects


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Write a text with defects into corpus.de and corpus.en; return the number of its pairs."""
    monkeypatch.chdir(tmp_path)
    pairs, _ = pairs_with_defects(800)
    for side, language in enumerate(("de", "en")):
        Path(f"corpus.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return len(pairs)


def test_a_text_is_cleaned_without_a_configuration(corpus: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["clean", "corpus.de", "corpus.en", "-o", "out", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["files"] == ["corpus.de.gz", "corpus.en.gz"]
    assert report["read"] == corpus
    kept = [list(read_lines(Path("out") / name)) for name in report["files"]]
    assert list(map(len, kept)) == [report["kept"]] * 2
    assert {"copy", "language", "empty"} <= set(report["removed"])


def test_rules_that_are_off_remove_nothing_and_processes_give_the_same_bytes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    off = [word for rule in ("copy", "duplicate", "lexical") for word in ("--off", rule)]
    assert run(["clean", "corpus.de", "corpus.en", "-o", "one", *off, "--json"]) == 0
    assert not {"copy", "duplicate", "lexical"} & set(json.loads(capsys.readouterr().out)["removed"])
    assert run(["clean", "corpus.de", "corpus.en", "-o", "two", *off, "--workers", "2"]) == 0
    for name in ("corpus.de.gz", "corpus.en.gz", "removed.tsv.gz", "report.json"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


def test_the_report_counts_a_text_and_the_overlaps_of_a_folder_of_splits(
    corpus: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", "corpus.de", "corpus.en", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["splits"]["train"]["read"] == corpus
    assert run(["split", "corpus.de", "corpus.en", "-o", "parts"]) == 0
    capsys.readouterr()
    assert run(["report", "parts", "--source", "de"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["train", "valid", "test"]
    (overlap,) = (row for row in rows if row.startswith("in train too"))
    assert overlap.split()[-6:] == ["0"] * 6


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device"), 3, f"No space left on device. {cure_of(OSError(28, ''))}"),
    ],
)
def test_an_interruption_and_an_error_of_the_system_are_one_line(
    failure: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*arguments: object) -> Callable[[int], object]:
        raise failure

    monkeypatch.setattr("bitext.split.split_corpus", fail)
    assert run(["split", "corpus.de", "corpus.en"]) == code
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"bitext {bitext.__version__}\n"
