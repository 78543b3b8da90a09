"""The documentation embeds the page of the demo model at a comment `<!-- live: TITLE | STATE -->`."""

from __future__ import annotations

import importlib.util
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
