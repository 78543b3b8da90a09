"""Markdown is translated where it is text, and its markup stays as markdown-it-py reads it."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.markdown import read, read_descriptions, read_markdown
from manyheads.documents.units import Translated


def document(text: str) -> Document:
    return read(text.encode(), ReadOptions())


def texts_of(text: str) -> list[str]:
    return [unit.text for unit in document(text).units]


def with_words_reversed(text: str) -> str:
    read = document(text)
    return read.write(Translated(" ".join(reversed(unit.text.split()))) for unit in read.units).decode()


def translated(text: str, translation: str, links: str | None = None) -> str:
    return document(text).write([Translated(translation, links)]).decode()


def structure(text: str) -> list[tuple[str, ...]]:
    """Return the types of the blocks, and those of the inline markup of each, of an independent parser."""
    blocks = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        inline = [child.type for child in token.children or ()]
        marks = sorted(kind for kind in inline if kind not in ("text", "softbreak"))
        blocks.append((token.type, *marks, token.content if token.type in ("fence", "code_block") else ""))
    return blocks


KEPT = [
    "---\ntitle: nein\n---\n", "+++\ntitle = 'nein'\n+++\n", "```python\nnein\n```\n", "    nein\n",
    "`nein`\n", "<https://nein.de>\n", "$nein + nein$\n",
    "$$\nnein\n\n- nein\n$$\n", "\\[\nnein\n\\]\n",
    "\\(nein\\)\n", "\\begin{align}\nnein\n\\end{align}\n", "[nein]: https://nein.de 'nein'\n", "[^nein]\n",
    "::: nein\n:::\n", '{{< nein "nein" >}}\n', "{% nein %}\n", "{{ nein }}\n", "import Nein from 'nein'\n",
    "{: .nein}\n", "/// nein | nein\n///\n",
    "[[nein]]\n", "[TOC]\n", "<!-- nein -->\n", "<script>\nnein\n</script>\n", "<kbd>nein</kbd>\n",
    "<pre>\nnein\n</pre>\n",
    "{nein}`nein`\n", ":nein:\n", '!!! nein "nein"\n', "![](nein.png)\n",
]  # fmt: skip


@pytest.mark.parametrize("source", KEPT)
def test_code_and_formulas_and_what_programs_read_is_no_text(source: str) -> None:
    assert texts_of(source) == []


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("Ein Hund\nläuft.\n\nGut.\n", ["Ein Hund läuft.", "Gut."]),
        ("# Ein Hund {#nein}\n\nEine *rote* Katze\n===\n", ["Ein Hund", "Eine rote Katze"]),
        ("- [ ] eins\n- [x] zwei\n  drei\n1. vier\n", ["eins", "zwei drei", "vier"]),
        ("> [!NOTE]\n> eins\n> zwei\n", ["eins zwei"]),
        ("eins  \nzwei\\\ndrei<br>vier\n", ["eins", "zwei", "drei", "vier"]),
        ("| eins | zwei \\| drei |\n|---|---|\n| `nein` | **vier** |\n", ["eins", "zwei | drei", "vier"]),
        ("[eins](nein 'zwei') ![drei](nein \"vier\") <img alt='fünf'>\n", ["zwei", "drei", "vier", "fünf", "eins"]),
        ("Text[^1]\n\n[^1]: eins\n    zwei\n\n    drei\n[^2]: vier\n", ["Text", "eins zwei", "drei", "vier"]),
        ("Wort\n: eins\n: zwei\n", ["Wort", "eins", "zwei"]),
        ('!!! note "nein"\n    eins\n\n    zwei\n', ["eins", "zwei"]),
        ('<div title="eins">\n<p>zwei</p>\n\ndrei\n\n</div>\n', ["eins", "zwei", "drei"]),
        ("\\[ja\\] \\(nein\\)\n", ["[ja]"]),
        ("A \\* b &amp; c &copy; 2 * 3\n", ["A * b & c © 2 * 3"]),
        ("Er sagt <b>ja</b> und <kbd>nein</kbd> heute\n", ["Er sagt ja und heute"]),
    ],
)
def test_the_translated_texts_are_what_a_reader_reads(source: str, texts: list[str]) -> None:
    assert texts_of(source) == texts


@pytest.mark.parametrize(
    ("source", "translation", "result"),
    [
        # nothing is escaped without need
        ("x", "snake_case, 2 * 3, a < b, [1], AT&T, C#", "snake_case, 2 * 3, a < b, [1], AT&T, C#"),
        ("x", "1986. A year", "1986\\. A year"),
        ("x", "- 3", "\\- 3"),
        ("x", "# 3", "\\# 3"),
        ("# x", "1. eins #", "# 1. eins \\#"),
        ("x", "*a* b", "\\*a\\* b"),
        ("x", "<a>", "\\<a>"),
        ("x", "&lt;", "\\&lt;"),
        ("x\n===", "---", "\\---\n==="),
        ("| x |\n|---|", "a | b", "| a \\| b |\n|---|"),
        ("![x](a.png)", "a [b] ]", "![a \\[b\\] \\]](a.png)"),
        ("[`a`](b 'x')", "it's", "[`a`](b 'it\\'s')"),
        # a reference that was named by its text keeps its name
        ("[x][] y\n\n[x]: u", "yes no", "[yes][x] no\n\n[x]: u"),
        ("![x]\n\n[x]: u", "yes", "![yes][x]\n\n[x]: u"),
        # delimiters that would not be read as such beside a letter
        ("**x**", '"강조"', '**"강조"**'),
        # an element without a word goes
        ("a **b** c", "x", "x"),
    ],
)  # fmt: skip
def test_a_translation_is_escaped_where_it_would_be_markup_and_only_there(
    source: str, translation: str, result: str
) -> None:
    assert translated(source, translation) == result


@pytest.mark.parametrize(
    "source", ["ja (**so**) hier", "ja _so_. hier", "ja **„so“**. hier", "ja **`x` so**, hier"]
)
def test_emphasis_that_comes_to_stand_beside_letters_is_read_as_emphasis(source: str) -> None:
    written = translated(source, "이(„낱말“)은", "0-0 1-0")
    assert structure(written) == structure(source)


@pytest.mark.parametrize(
    "source", ["<b>\neins zwei\n</b>\n", "| a b |\n|---|\n\n<div>\nc | d\n</div>\n", "> <p>\n> a b\n> </p>"]
)
def test_a_block_of_html_stays_one(source: str) -> None:
    assert [block[0] for block in structure(with_words_reversed(source))] == [
        block[0] for block in structure(source)
    ]
    assert with_words_reversed(source) != source


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_line_ends_and_the_rest_of_the_file_stay(line_end: str, mark: str) -> None:
    source = f"{mark}---\na: b\n---\n> eins\n> zwei\n\n- drei  \n  vier\n\n```\nx\n```\n".replace("\n", line_end)
    expected = f"{mark}---\na: b\n---\n> zwei eins\n\n- drei  \n  vier\n\n```\nx\n```\n".replace("\n", line_end)
    assert with_words_reversed(source) == expected


def test_the_source_stands_before_its_translation_in_a_bilingual_file() -> None:
    read = document("- eins\n")
    assert read.write([Translated("one")], bilingual=True) == b"- eins<br/>one\n"


PIECES = st.sampled_from(
    ["Hund", "läuft.", "ja", " ", " ", "\n", "\n", "\n\n", "  \n", "\\\n", "*", "**", "_", "~~", "`", "[", "]",
     "](u)", "](u 'ja')", "![", "<b>", "</b>", "<br>", "<div>", "> ", "- ", "1. ", "# ", "\n===\n",
     "\n---\n", "|", "|---|\n", "```\n", "    ", "\t", "$", "$$", "\\", "&amp;", "&", "<", "[^1]", "[^1]: ",
     "[ja]: u\n", "{#a}", ":::", "!!! note\n", "<!--", "\r\n", "한국어", "(", ")",
     '"', "\0", "<kbd>"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
@example("[ja\n][]\n\n[ja]: u")
def test_any_file_whose_units_stay_is_written_as_it_was(source: str) -> None:
    read = document(source)
    assert read.write(Translated(unit.text) for unit in read.units) == source.encode()


WORDS = st.lists(
    st.sampled_from(
        ["Hund", "ja", "*eins*", "**zwei drei**", "~~vier~~", "`a b`", "[fünf](u)", "![sechs](u)", "snake_case",
         "2 * 3", "$x$", "\\[a\\]", "\\*", "&lt;b&gt;", "<b>acht</b>", "(neun)", "1\\.", "\\#", "a < b", "AT&T",
         "**한국어**"]
    ),
    min_size=1, max_size=8,
).map(" ".join)  # fmt: skip
BLOCKS = st.lists(
    st.tuples(st.sampled_from(["", "# ", "- ", "> ", "1. ", "> - ", "[^1]: "]), WORDS).map("Ja ".join),
    min_size=1,
    max_size=4,
).map("\n\n".join)


@settings(max_examples=100, deadline=None)
@given(BLOCKS.map(lambda text: re.sub("^Ja ", "", text)))
@example("Ja **zwei drei** 1\\. *eins*")
def test_a_parser_finds_the_same_structure_when_the_words_are_reversed(source: str) -> None:
    assert structure(with_words_reversed(source)) == structure(source)


@pytest.mark.parametrize(
    "part", ["[", "<", "*a ", "`", "$", "{{", "\\(", "> ", "|a", "&", "<kbd>", "a\n", "[a](", "$$\n"]
)
def test_a_page_of_the_beginnings_of_markup_is_read_fast(part: str) -> None:
    source, start = part * (100_000 // len(part)), time.process_time()
    for reader in (read_markdown, read_descriptions):
        list(reader(source))
    assert time.process_time() - start < 20
