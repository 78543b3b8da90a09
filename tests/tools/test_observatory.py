"""The page of what was found in released libraries says what observatory/summary.json holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tools.observatory import PAGES, ROOT, SUMMARY, page, span

from transformer_doctor.texts import Language

MEASURED: dict[str, Any] = json.loads(SUMMARY.read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", PAGES)
def test_the_page_is_up_to_date(language: Language) -> None:
    written = PAGES[language].read_text(encoding="utf-8")
    assert written == page(language, MEASURED), "Run: python -m tools.observatory --write"


def test_the_doctor_names_a_finding_where_the_independent_script_shows_it_and_nowhere_else() -> None:
    for finding in MEASURED["findings"]:
        assert finding["shown"] or finding["named"], finding
        assert not {*finding["named"]} & {*finding["not shown"]}, finding
        assert not {*finding["not named"]} & {*finding["shown"]}, finding


def test_every_finding_has_a_report_or_the_address_of_an_issue() -> None:
    for finding in MEASURED["findings"]:
        report = finding["report"]
        assert report.startswith("https://github.com/") or (ROOT / "observatory/reports" / report).is_dir(), report


@pytest.mark.parametrize(
    ("shown", "others", "expected"),
    [
        (["4.9.0", "4.10.0"], [], "4.9.0 or earlier – 4.10.0"),
        (["4.10.0"], ["4.9.0"], "4.10.0"),
        (["4.9.0", "5.1.0", "5.2.0"], ["4.8.0", "5.0.0"], "4.9.0, 5.1.0 – 5.2.0 (the newest)"),
    ],
)
def test_releases_are_given_from_the_first_to_the_last(shown: list[str], others: list[str], expected: str) -> None:
    text = {"newest": "the newest", "or earlier": "{} or earlier"}
    assert span({"shown": shown, "not shown": others}, text, "5.2.0") == expected
