"""The table of literals: patterns that are quick to search, and placeholders that both sides of a pair have."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bitext.literals import _LAYOUT_SIGN, _SIGN, _join_patterns, layout_kinds, literal_kinds, placeholders_of


def test_patterns_have_no_groups_and_mean_the_same_in_python_and_javascript() -> None:
    for kind in literal_kinds():
        assert _join_patterns(literal_kinds, ()).groups == 0
        assert "\\s" not in kind.pattern.replace("\\\\", "")
        assert "(?P" not in kind.pattern


@example("1 #")  # the end of a heading that has no beginning
@given(st.text(alphabet="ab <>{}@.:/wh1😀가① \t%$#[]_&;-+`\\(),*_~|>•=^{}Nn", max_size=40))
def test_the_quick_search_misses_no_literal(text: str) -> None:
    needs = tuple(kind.needs for kind in literal_kinds() if re.search(kind.needs, text, re.ASCII))
    signs = _SIGN.search(text) or _LAYOUT_SIGN.search(text)
    assert signs or not _join_patterns(literal_kinds, needs).search(text)
    assert _LAYOUT_SIGN.search(text) or not _join_patterns(layout_kinds, needs).search(text)


def test_the_time_for_a_long_line_grows_with_its_length() -> None:
    """A pattern that tries every division of a line would take hours."""
    for text in ("%" * 20_000, "{" * 20_000, "a." * 20_000, "<a " * 20_000, "www." * 20_000, "a@" * 20_000):
        assert placeholders_of(text) is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Siehe https://example.org/a?b=1, wenn du willst.", ["https://example.org/a?b=1"]),
        ("(www.x.org) tom@x.org", ["www.x.org", "tom@x.org"]),
        ("<b>{name}</b> %(n)s %1$s ${a} %5.2f", ["<b>", "{name}", "</b>", "%(n)s", "%1$s", "${a}", "%5.2f"]),
        ("$1 @tom __NAME__ 😀 5 % 17:45 &amp; `x`", []),
    ],
)
def test_placeholders_are_the_literals_that_both_languages_share(text: str, expected: list[str]) -> None:
    assert placeholders_of(text) == expected
