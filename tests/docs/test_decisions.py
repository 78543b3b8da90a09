"""Every decision has its question and its outcome, and every page of decisions is in the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DESIGN = Path(__file__).parent.parent.parent / "design"
INDEX = (DESIGN / "README.md").read_text(encoding="utf-8")
PAGES = sorted(page for page in DESIGN.glob("*.md") if page.name != "README.md")


def decisions(text: str) -> list[str]:
    """Return the texts of a page that hold one decision each: its sections, or the whole page."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    return [text] if "**Question.**" in sections[0] else sections[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_decision_has_a_question_and_a_decision(page: Path) -> None:
    for decision in decisions(page.read_text(encoding="utf-8")):
        title = decision.splitlines()[0]
        assert decision.count("**Question.**") == 1, title
        assert re.search(r"\*\*(?:Decision|Options and decisions)\.\*\*", decision), title


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_figures_name_the_processor_or_say_that_none_matters(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "**Figures.**" not in text or re.search("cores|EPYC|processor", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_in_the_index(page: Path) -> None:
    assert f"({page.name})" in INDEX
