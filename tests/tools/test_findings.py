"""The pages of the doctor hold the texts of the package, and updates keep the text around them."""

from __future__ import annotations

import pytest
from tools.findings import FOLDERS, PAGES, with_findings

from manyheads.checks.catalogue import CATALOGUE
from transformer_doctor.texts import LANGUAGES, Language


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_section_of_each_finding(name: str, language: Language) -> None:
    page = (FOLDERS[language] / name).read_text("utf-8")
    assert with_findings(page, PAGES[name], language) == page, "run python -m tools.findings --write"
    for subject in PAGES[name]:
        for known in CATALOGUE[subject].values():
            assert f"`{known.name}` (" in page
            assert f"### {known.texts[language].title}\n" in page


def test_a_new_finding_is_inserted_in_order_and_the_rest_is_unchanged() -> None:
    page = (FOLDERS["en"] / "doctor.md").read_text("utf-8")
    names = list(CATALOGUE["model"])
    start, end = (page.index(f"({name})=\n") for name in (names[3], names[4]))
    without = page[:start] + page[end:]
    assert with_findings(without, ("model",), "en") == page
    assert with_findings(without.replace("## How it works", "## How"), ("model",), "en") == page.replace(
        "## How it works", "## How"
    )


def test_a_changed_text_is_written() -> None:
    page = (FOLDERS["en"] / "doctor.md").read_text("utf-8")
    known = next(iter(CATALOGUE["model"].values()))
    changed = page.replace(known.texts["en"].title, "Another title")
    assert changed != page
    assert with_findings(changed, ("model",), "en") == page
