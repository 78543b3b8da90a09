"""Tags are projected onto translations: each once, nested as before, around its words."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from manyheads.documents.blocks import Block
from manyheads.documents.html import read_html
from manyheads.documents.tag_projection import project_tags


def blocks(source: str) -> list[Block]:
    return [unit.block for unit in read_html(source)]


def with_tags(source: str, text: str, links: str | None) -> str:
    (block,) = blocks(source)
    return project_tags(block, text, links)


@pytest.mark.parametrize(
    ("source", "text", "links", "result"),
    [
        # der kleine Hund -> the little dog; words in the same order
        ("der <b>kleine</b> Hund", "the little dog", "0-0 1-1 2-2", "the <b>little</b> dog"),
        # words change their order, and the tag goes with its word
        ("<i>heute</i> schläft er", "he sleeps today", "2-0 1-1 0-2", "he sleeps <i>today</i>"),
        # an element in another
        ("ein <a href='x'>sehr <b>roter</b> Ball</a> .", "a very red ball .", "0-0 1-1 2-2 3-3 4-4",
         "a <a href='x'>very <b>red</b> ball</a> ."),
        # the full stop is not part of the link
        ("Sieh <a>hier</a>.", "Look here.", "0-0 1-1", "Look <a>here</a>."),
        ("(<b>ja</b>)", "(yes)", "0-0", "(<b>yes</b>)"),
        # a word that two elements share goes to the first
        ("<b>Haus</b><i>tür auf</i>", "open front door", "1-0 0-1 0-2", "<i>open</i> <b>front door</b>"),
        # no target word is linked to it: it stays, empty, at its place
        ("eins <b>zwei</b> drei", "one three", "0-0 2-1", "one <b></b>three"),
        # atoms keep their blanks, and stand before the full stop
        ("Drücke <code>F1</code> jetzt", "Press now", "0-0 1-1", "Press <code>F1</code> now"),
        ("<img src=a> Hund", "Dog", "0-0", "<img src=a> Dog"),
        ("Hund <img src=a>", "Dog", "0-0", "Dog <img src=a>"),
        ("Hund<img src=a>.", "Dog.", "0-0", "Dog<img src=a>."),
        ("Hund <img src=a>.", "Dog.", "0-0", "Dog <img src=a>."),
        ("\n <img src=a> <img src=b> Hund <i><img src=c></i>\n ", "Dog", "0-0",
         "\n <img src=a> <img src=b> Dog<i> <img src=c></i>\n "),
        ("der&nbsp;<img src=a>&nbsp;Hund", "the\xa0\xa0dog", "0-0 1-1", "the\xa0<img src=a>\xa0dog"),
        # without links the same word order is assumed
        ("der <b>kleine</b> Hund", "the little dog", None, "the <b>little</b> dog"),
        # tags that are not in order stay
        ("Der <g id='1'>rote</g> <x id='2'/>Hund", "The red dog", "0-0 1-1 2-2",
         "The <g id='1'>red</g> <x id='2'/>dog"),
        ("<b>eins <i>zwei</b> drei</i>", "one two three", "0-0 1-1 2-2", None),
        ("eins </b> zwei", "one two", "0-0 1-1", "one </b> two"),
        # escaped once
        ("a &lt; <b>b</b>", "a < b", "0-0 1-1 2-2", "a &lt; <b>b</b>"),
    ],
)  # fmt: skip
def test_tags_are_placed_around_their_translated_words(
    source: str, text: str, links: str | None, result: str | None
) -> None:
    found = with_tags(source, text, links)
    assert sorted(re.findall("<[^<>]*>", found)) == sorted(re.findall("<[^<>]*>", source))
    if result is not None:
        assert found == result


TAGGED = ["<b>", "</b>", "<i>", "</i>", "<u>", "</u>", "<img>", "ja ", "nein", " ", "."]


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(TAGGED), max_size=20).map("".join),
    st.lists(st.sampled_from(["yes", "no.", "(so)", "x"]), max_size=8).map(" ".join),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 7)), max_size=8),
)  # fmt: skip
def test_every_tag_occurs_exactly_once_and_the_text_is_the_translation(
    source: str, text: str, links: list[tuple[int, int]]
) -> None:
    for unit in read_html(source):
        raw = source[unit.start : unit.end]
        found = project_tags(unit.block, text, " ".join(f"{word}-{other}" for word, other in links))
        assert sorted(re.findall("<[^<>]*>", found)) == sorted(re.findall("<[^<>]*>", raw))
        assert re.sub("<[^<>]*>", "", found).split() == text.split() or "".join(
            re.sub("<[^<>]*>", "", found).split()
        ) == "".join(text.split())
        nested = re.sub("<img>", "", found)
        while (inner := re.sub(r"<([biu])>[^<]*</\1>", "", nested)) != nested:
            nested = inner
        stray = re.sub("<img>", "", raw)
        while (inner := re.sub(r"<([biu])>[^<]*</\1>", "", stray)) != stray:
            stray = inner
        if "<" not in stray:
            assert "<" not in nested  # well-formed input gives well-formed output


def shown(source: str) -> str:
    """Return what a browser shows of a document, with "#" for each image."""
    return re.sub(r"\s+", " ", re.sub("<(?!img)[^<>]*>", "", source).replace("<img>", "#"))


INLINE = st.recursive(
    st.lists(st.sampled_from(["<img>", "<img>", " ", "\n ", "ja", "nein", "."]), max_size=6).map("".join),
    lambda inner: st.lists(inner | inner.map("<b>{}</b>".format), max_size=4).map("".join),
    max_leaves=6,
)


@settings(max_examples=300)
@given(INLINE.filter(lambda source: not re.search(r"[a-z.](<[^<>]*>)+[a-z.]", source)))
@example("\n <img>ja<img> <img> .<img>\n")
@example("ja <b><img></b> nein <b>ja <img></b>nein<b><img> ja</b>")
def test_the_white_space_beside_images_and_at_the_edges_is_that_of_the_source(source: str) -> None:
    """The translation is the text itself, its words in another case."""
    for unit in read_html(source):
        if any(map(str.isalpha, unit.text)):
            same = " ".join(f"{word}-{word}" for word in range(len(unit.text.split())))
            found = project_tags(unit.block, unit.text.upper(), same)
            assert shown(found).lower() == shown(source[unit.start : unit.end])


def test_a_page_of_tags_alone_is_processed_fast() -> None:
    for part in (
        "<b>",
        "<b>a ",
        "<img>a ",
        "</b>",
        "<",
        "<!",
        "<a b=",
        "<b>a</b> ",
        "<!--",
        "&",
        "</",
        "<b><i>a</b> ",
    ):
        source = part * (5_000 // len(part))
        for block in blocks(source):
            project_tags(block, "a " * 1_000, " ".join(f"{index % 500}-{index}" for index in range(1_000)))
