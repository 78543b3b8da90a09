"""The documentation embeds the page of the demo model at a comment `<!-- live: TITLE | STATE -->`."""

from __future__ import annotations

import pytest
from tests.docs.book import extension

pytest.importorskip("sphinx")
live = extension("live")


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
