"""Long lines are folded between words, below their own beginning."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from manyheads.cli.doctor import fold_lines
from manyheads.cli.main import run
from manyheads.doctor.museum import EXHIBIT_TEXTS
from manyheads.doctor.texts import LANGUAGES


def test_a_line_goes_on_below_what_stands_behind_its_label() -> None:
    line = "  seen  the loss is 2.0 after 40 updates; chance allows 3.0"
    assert list(fold_lines([line, "short"], 30)) == [
        "  seen  the loss is 2.0 after",
        "        40 updates; chance",
        "        allows 3.0",
        "short",
    ]
    assert list(fold_lines(["text     one two three"], 18)) == ["text     one two", "         three"]


def test_wide_letters_count_twice_and_nothing_is_folded_where_nobody_reads() -> None:
    assert list(fold_lines(["패딩을 글처럼 읽는다"], 13)) == ["패딩을 글처럼", "읽는다"]
    assert list(fold_lines(["a " * 100], None)) == ["a " * 100]


def test_a_word_that_is_too_long_stays_whole() -> None:
    assert list(fold_lines(["see docs/doctor-findings.md#rate-too-high now"], 20)) == [
        "see",
        "docs/doctor-findings.md#rate-too-high",
        "now",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_museum_tells_loses_no_word(language: str) -> None:
    for texts in EXHIBIT_TEXTS[language].values():
        for text in vars(texts).values():
            lines = list(fold_lines([text], 80))
            assert " ".join(lines) == text
            assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_visit_to_the_museum_fits_a_terminal(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "museum", "7", "--lang", language]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 20
    assert max(map(cell_len, lines)) <= 80
