"""Search the Korean book: find a word without its particle (학습 in 학습을), as Sphinx does not do by itself.

The page of the doctor's findings is written each time the book is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from tools.findings import findings_page

WORD = re.compile(r"[가-힣]+|[^\W가-힣]+")  # particles also follow words in Latin letters: CPU에서
SHORTEST = 2  # letters of a beginning that is indexed


class SearchKorean(SearchEnglish):
    """Index the words of a text, and the beginnings of those in Hangul; a browser finds whole words only."""

    lang = "ko"

    def split(self, input: str) -> list[str]:
        """Return the words of a text, each after its beginnings."""
        return [part for word in WORD.findall(input) for part in beginnings(word)]


def beginnings(word: str) -> Iterator[str]:
    """Yield the beginnings of a word in Hangul, then the word itself."""
    if "가" <= word[0] <= "힣":
        yield from (word[:length] for length in range(SHORTEST, len(word)))
    yield word


def write_findings(app: Sphinx) -> None:
    """Write the page of the doctor's findings before Sphinx looks for pages."""
    path = Path(app.srcdir, "reference", "generated", "findings.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(findings_page("ko"), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the language, which Sphinx chooses by that of the book, and the page."""
    app.add_search_language(SearchKorean)
    app.connect("builder-inited", write_findings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
