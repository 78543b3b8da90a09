"""Files get their final name when they are complete, the report last; existing files are not overwritten."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from bitext.cleaning import writing
from bitext.cleaning.clean import Judgement
from bitext.cleaning.report import report_of
from bitext.cleaning.writing import finished_report, write_cleaned
from bitext.errors import DataError
from bitext.pairs import Pair

FILES = ("train.de.gz", "train.en.gz")
PAIRS = [Pair("Ein Hund.", "A dog.", 1), Pair("Zwei\tHunde", "Zwei\nHunde", 2), Pair("Rot", "Red", 3)]


def write(out: Path, pairs: list[Pair] = PAIRS) -> None:
    judgement = Judgement(
        np.array([0, 3, 0], np.uint8), np.ones((3, 2), np.uint8), np.full((3, 4), 0.5, np.float32)
    )
    write_cleaned(out, out / ".clean", pairs, judgement, report_of(judgement, out, FILES, ("de", "en"), "key"))


def test_kept_and_removed_pairs_are_written_with_reason_scores_and_line(tmp_path: Path) -> None:
    write(tmp_path)
    assert gzip.decompress((tmp_path / "train.de.gz").read_bytes()) == b"Ein Hund.\nRot\n"
    assert gzip.decompress((tmp_path / "train.en.gz").read_bytes()) == b"A dog.\nRed\n"
    lines = gzip.decompress((tmp_path / "removed.tsv.gz").read_bytes()).decode().splitlines()
    assert lines[0].split("\t")[0] == "reason"
    assert lines[1].split("\t") == ["copy", *["0.500"] * 4, "2", "Zwei Hunde", "Zwei Hunde"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*FILES, "removed.tsv.gz", "report.html", "report.json"]
    )
    report = finished_report(tmp_path, tmp_path / ".clean", FILES, "key")
    assert report is not None
    assert [example["line"] for example in report.examples["copy"]] == [2]


def test_a_full_disk_leaves_no_file_under_a_final_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_with_full_disk(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writing, "page_of", fail_with_full_disk)
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        write(tmp_path)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("pairs", [PAIRS[:2], [*PAIRS, PAIRS[0]]])
def test_a_corpus_that_changed_since_it_was_judged_is_an_error(tmp_path: Path, pairs: list[Pair]) -> None:
    with pytest.raises(DataError, match="has changed"):
        write(tmp_path, pairs)
    assert [*tmp_path.iterdir()] == []


def test_existing_files_of_the_user_are_not_overwritten(tmp_path: Path) -> None:
    assert finished_report(tmp_path, tmp_path / ".clean", FILES, "key") is None
    (tmp_path / "train.de.gz").write_bytes(b"mine")
    with pytest.raises(DataError, match=r"holds train\.de\.gz already"):
        finished_report(tmp_path, tmp_path / ".clean", FILES, "key")


def test_the_report_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a report is taken as complete by the next call."""
    replace, written = os.replace, []

    def record_replace(path: Path, target: Path) -> None:
        written.append(Path(target).name)
        replace(path, target)

    monkeypatch.setattr(os, "replace", record_replace)
    write(tmp_path)
    assert written[-1] == "report.json"
    assert len(written) == 5
