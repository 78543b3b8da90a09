"""The documentation embeds the page of the demo model at a comment `<!-- live: TITLE | STATE -->`."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
pytest.importorskip("sphinx")
_specification = importlib.util.spec_from_file_location("live", DOCS / "_ext" / "live.py")
assert _specification is not None
assert _specification.loader is not None
live = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(live)

EMBEDDING = ["tutorial/attention.md", "tutorial/masks.md", "howto/python-api.md",
             "ko/tutorial/attention.md", "ko/tutorial/masks.md", "ko/python-api.md"]  # fmt: skip


def test_a_comment_becomes_a_frame_with_a_title_and_a_link() -> None:
    text = "before\n\n<!-- live: A head | steps?q=Haus&head=1 -->\n\nafter"
    found = live.embedded(text, "ko/tutorial/attention", "ko")
    address = "../../demo-de-en.html?lang=ko#/steps?q=Haus&amp;head=1"
    assert f'<iframe src="{address}" title="A head" loading="lazy"></iframe>' in found
    assert f'<a href="{address}">전체 페이지 열기</a>' in found
    assert found.startswith("before\n\n<div")
    assert found.endswith("</div>\n\nafter")


def test_other_comments_are_not_changed() -> None:
    text = "<!-- a live one -->\n`<!-- live: TITLE | STATE -->`"
    assert live.embedded(text, "index", "en") == text


@pytest.mark.parametrize("name", EMBEDDING)
def test_a_page_says_before_its_frame_how_to_create_the_embedded_page(name: str) -> None:
    """Check the paragraph for readers of the repository, who do not see the frame."""
    paragraphs = (DOCS / name).read_text(encoding="utf-8").split("\n\n")
    at = next(index for index, text in enumerate(paragraphs) if live.LIVE.fullmatch(text))
    assert "`manyheads demo`" in paragraphs[at - 1]
    assert "`runs/demo-de-en/page.html`" in paragraphs[at - 1]


def test_the_embedded_page_is_written_to_the_address_of_the_frames() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^docs:(?:.*\n\t)+.* -m tools\.demo_page build/docs/{re.escape(live.PAGE)}$", makefile, re.M)
