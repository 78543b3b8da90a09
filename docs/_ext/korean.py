"""Search the Korean book: find a word without its particle (학습 in 학습을), as Sphinx does not do by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

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


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the language, which Sphinx chooses by that of the book."""
    app.add_search_language(SearchKorean)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
