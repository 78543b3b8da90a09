"""A run judges suggested corrections by their log-probability after their own source and after others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.serving.process import ENGLISH, GERMAN, train_once, train_translator

from bitext.tsv import split_row
from manyheads.data.corrections import Correction
from manyheads.data.suggestions import Suggestion, SuggestionFile
from manyheads.errors import DataError, UsageError
from manyheads.improve.corrections import _other_sources, _score, review_corrections
from manyheads.inference.translation.translator import Translator


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_once(tmp_path_factory, train_translator)


def write(path: Path, *rows: tuple[str, str, str], languages: tuple[str, str] = ("de", "en")) -> Path:
    for source, output, text in rows:
        SuggestionFile(path).append(Suggestion("2026-01-01", languages, source, output, text))
    return path


def test_a_run_tells_right_corrections_from_those_of_other_sources(run: Path, tmp_path: Path) -> None:
    half = len(GERMAN) // 2
    wrong = "the wrong output"
    right = zip(GERMAN[:half], [wrong] * half, ENGLISH[:half], strict=True)
    exchanged = zip(GERMAN[half:], [wrong] * half, ENGLISH[half + 7 :] + ENGLISH[half : half + 7], strict=False)
    path = write(tmp_path / "s.jsonl", *right, *exchanged)
    with path.open("ab") as file:
        file.write(b"nothing\n")
    write(path, ("a", "b", "c"), languages=("fr", "en"))
    review = review_corrections(path, run, device="cpu")
    scores = _score(Translator.load(run, device="cpu"), review.corrections)
    assert np.median(scores.gain[:half]) > 1 > np.median(scores.gain[half:])
    assert sum("unrelated" in correction.reasons for correction in review.corrections[:half]) < half / 3
    assert sum("unrelated" in correction.reasons for correction in review.corrections[half:]) > half / 3
    document = review.to_json()
    assert (document["suggestions"], document["other_languages"], document["damaged_lines"]) == (
        len(review.corrections), 1, [len(review.corrections) + 1],
    )  # fmt: skip
    assert document["accepted"] + document["doubtful"] + document["rejected"] == document["corrections"]
    assert "no suggestion in 1 lines" in review.lines()[-1]


def test_scores_do_not_depend_on_texts_that_are_too_long(run: Path) -> None:
    translator = Translator.load(run, device="cpu")
    long = " ".join(ENGLISH)
    corrections = [Correction(GERMAN[0], "a", ENGLISH[0], ""), Correction(GERMAN[1], "b", long * 9, "")]
    scores = _score(translator, corrections)
    assert np.isnan([scores.loss[1], scores.gain[1], scores.end[1]]).all()
    assert np.isfinite([scores.loss[0], scores.end[0]]).all()
    assert np.isnan(scores.gain[0])  # no other source is left


def test_other_sources_are_never_the_own_one() -> None:
    sources = [[1], [2], [1], [3], [4], [5]]
    found = _other_sources(sources)
    assert len(found) == 3
    for others in found:
        assert all(other != own for other, own in zip(others, sources, strict=True))
    assert _other_sources([[1], [1]]) == []


def test_rows_are_tsv_and_the_page_holds_the_doubtful_ones(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        ("Der Hund schläft\tdort.", 'The dog "sleeps" here.', 'The dog "sleeps" there.'),
        ("Ja, das ist gut so.", "Yes, that is good.", "Yes, that is good."),
        ("Der Mann liest heute ein Buch.", "The man is reading a book.", "My aunt cooks soup on Sundays."),
    )
    review = review_corrections(path)
    assert [split_row(row) for row in review.accepted_rows()] == [
        ["Der Hund schläft dort.", 'The dog "sleeps" there.']
    ]
    titles, *others = map(split_row, review.other_rows())
    assert [dict(zip(titles, row, strict=True))["reasons"] for row in others] == ["unchanged", "far"]
    assert "My aunt" in review.page()
    assert "Ja, das" not in review.page()


def test_files_that_cannot_be_sorted_are_refused(run: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", ("a", "b", "c"), languages=("fr", "en"))
    with pytest.raises(DataError, match="has no suggestion de-en; 1 others, 0 damaged"):
        review_corrections(path, run, device="cpu")
    write(path, ("a", "b", "c"))
    with pytest.raises(UsageError, match=r"\(fr-en, de-en\)\. Choose by a run"):
        review_corrections(path)
    with pytest.raises(DataError, match="cannot be read"):
        review_corrections(tmp_path / "nothing")
    (tmp_path / "empty").touch()
    with pytest.raises(DataError, match="has no suggestion; 0 others"):
        review_corrections(tmp_path / "empty")
