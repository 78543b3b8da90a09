"""Every decision has its question and its outcome, and every page of decisions is in the index."""

from __future__ import annotations

import re
from pathlib import Path

DESIGN = Path(__file__).parent.parent.parent / "design"
INDEX = (DESIGN / "README.md").read_text(encoding="utf-8")
PAGES = sorted(page for page in DESIGN.glob("*.md") if page.name != "README.md")


def decisions(text: str) -> list[str]:
    """Return the texts of a page that hold one decision each: its sections, or the whole page."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    return [text] if "**Question.**" in sections[0] else sections[1:]


def test_a_decision_has_a_question_and_a_decision() -> None:
    for page in PAGES:
        for decision in decisions(page.read_text(encoding="utf-8")):
            title = f"{page.name}: {decision.splitlines()[0]}"
            assert decision.count("**Question.**") == 1, title
            assert re.search(r"\*\*(?:Decision|Options and decisions)\.\*\*", decision), title


def test_figures_name_the_processor_or_say_that_none_matters() -> None:
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    figures = {name: text for name, text in texts.items() if "**Figures.**" in text}
    assert not [name for name, text in figures.items() if not re.search("cores|EPYC|processor", text)]


def test_every_page_is_in_the_index() -> None:
    assert not [page.name for page in PAGES if f"({page.name})" not in INDEX]
