"""Embed the page of the demo model: `<!-- live: TITLE | STATE -->` in a page becomes a frame of the book.

TITLE is for screen readers, STATE is what stands behind `#/` in the address of the page. Readers of the repository
do not see the comment. `python -m tools.demo_page` writes the page beside the English book.
"""

from __future__ import annotations

import posixpath
import re
from html import escape

from sphinx.application import Sphinx

PAGE = "demo-de-en.html"
LIVE = re.compile(r"(?m)^<!-- live: (?P<title>[^|\n]+) \| (?P<state>\S+) -->$")
CAPTIONS = {
    "en": "The demo model, which computes in your browser. ",
    "ko": "데모 모델이 이 브라우저에서 직접 계산합니다. ",
}
WHOLE = {"en": "Open the whole page", "ko": "전체 페이지 열기"}


def embedded(text: str, page: str, language: str) -> str:
    """Return the text of a page below docs/ with a frame in place of each comment."""
    path = posixpath.relpath(PAGE, posixpath.dirname(page) or ".")

    def frame(found: re.Match[str]) -> str:
        address = escape(f"{path}?lang={language}#/{found['state']}")
        title = escape(found["title"])
        return (
            f'<div class="live">\n<iframe src="{address}" title="{title}" loading="lazy"></iframe>\n'
            f'<p>{CAPTIONS[language]}<a href="{address}">{WHOLE[language]}</a></p>\n</div>'
        )

    return LIVE.sub(frame, text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Change each page when it is read."""
    language = app.config.language
    prefix = "ko/" if language == "ko" else ""

    def read(app: Sphinx, name: str, content: list[str]) -> None:
        content[0] = embedded(content[0], prefix + name, language)

    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
