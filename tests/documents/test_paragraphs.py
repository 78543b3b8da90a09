"""Plain text is read by paragraphs, and written with lines of its width."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.paragraphs import read, read_paragraphs
from manyheads.documents.units import Part, Translated

WIDE = "This line is wrapped at forty-five columns as\n"


def document(text: str) -> Document:
    return read(text.encode(), ReadOptions())


def texts_of(text: str) -> list[str]:
    return [unit.text for unit in document(text).units]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("Der Hund läuft\ndurch den Wald.\n\nEr bellt.\n", ["Der Hund läuft durch den Wald.", "Er bellt."]),
        ("A Heading\n\n" + WIDE + "The text is. End\n", ["A Heading", WIDE.strip() + " The text is. End"]),
        # hyphens at the end of a line
        ("This is an exam-\nple of it.\n", ["This is an example of it."]),
        ("A well-known man. He is well-\nknown here.\n", ["A well-known man. He is well-known here."]),
        ("All is well and known. He is well-\nknown here.\n", ["All is well and known. He is well-known here."]),
        ("Der Anglo-\nAmerikaner\n", ["Der Anglo-", "Amerikaner"]),
        ("Die Haus-\nund Gartentür\n", ["Die Haus- und Gartentür"]),
        ("Donau\u00ad\ndampf\n", ["Donaudampf"]),
        # lists, verses, tables
        ("- one and\n  a half\n* two\n3. three\n(a) four\n", ["one and a half", "two", "three", "four"]),
        ("Roses are red,\nViolets are blue,\n", ["Roses are red,", "Violets are blue,"]),
        (WIDE + "it.\n\nthe sun is low\nthe day is done\n",
         [WIDE.strip() + " it.", "the sun is low", "the day is done"]),
        ("Name     Unit\nlength   metres\na\tb\n", ["Name", "Unit", "length", "metres", "a", "b"]),
        ("Title\n=====\n1.5\nText\n", ["Title", "Text"]),
        # quoted text and indentation
        ("> one and\n> two\n>> three\nfour\n", ["one and two", "three", "four"]),
        ("  First line\nand second\n  Next one\n", ["First line and second", "Next one"]),
        ("我喜欢在下雨" * 4 + "\n没有人\n", ["我喜欢在下雨" * 4 + "没有人"]),
    ],
)  # fmt: skip
def test_the_lines_of_a_paragraph_are_one_text(source: str, texts: list[str]) -> None:
    assert texts_of(source) == texts


@pytest.mark.parametrize("prefix", ["", "  ", "> ", "> > "])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_translation_is_wrapped_at_the_width_of_its_source_behind_the_same_marks(
    prefix: str, line_end: str
) -> None:
    source = "".join(f"{prefix}{WIDE.strip()}{line_end}" for _ in range(3))
    (unit,) = document(source).units
    written = document(source).write([Translated("word " * 50)]).decode()
    lines = written.removesuffix(line_end).split(line_end)
    assert unit.text == " ".join([WIDE.strip()] * 3)
    assert all(line.startswith(f"{prefix}word") for line in lines)
    assert 40 < max(map(len, lines)) <= len(prefix + WIDE.strip())
    assert " ".join(line.removeprefix(prefix) for line in lines) == "word " * 49 + "word"


def test_the_lines_of_a_list_item_hang_behind_its_bullet() -> None:
    written = document(f"- {WIDE}  and it ends.\n").write([Translated("word " * 14)]).decode()
    assert [line[:3] for line in written.splitlines()] == ["- w", "  w"]


def test_a_line_of_a_text_without_a_width_is_not_wrapped() -> None:
    assert document("Ein Hund\n").write([Translated("word " * 50)]) == b"word " * 49 + b"word\n"


def test_chinese_is_wrapped_by_columns_and_no_line_begins_with_a_mark() -> None:
    written = document(WIDE * 3).write([Translated("我喜欢下雨，" * 12)]).decode()
    widths = [sum(1 + (unicodedata.east_asian_width(letter) == "W") for letter in line) for line in written.split()]
    assert "".join(written.split()) == "我喜欢下雨，" * 12
    assert len(widths) > 1
    assert max(widths) <= 45
    assert not any(line.startswith("，") for line in written.split())


def test_the_cells_of_a_table_stay_in_their_columns() -> None:
    part = Part("Name     Unit\nlength   metres\n", [read_paragraphs])
    written = part.write([Translated("Bezeichnung"), Translated("Einheit"), Translated("ab"), Translated("cd")])
    assert written == "Bezeichnung Einheit\nab       cd\n"


PIECES = st.sampled_from(
    ["word", "Word", "exam-", " ", "    ", "\t", "\n", "\n", "\n\n", "- ", "> ", "\r\n", ".", WIDE, "的", "="]
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_any_file_whose_units_stay_is_written_as_it_was(source: str) -> None:
    read = document(source)
    assert read.write(Translated(unit.text) for unit in read.units) == source.encode()


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_all_that_has_letters_is_in_a_unit(source: str) -> None:
    found = "".join(sorted("".join(unit.text for unit in document(source).units)))
    assert [letter for letter in found if letter.isalpha()] == sorted(filter(str.isalpha, source))


@pytest.mark.parametrize("part", ["> ", "- ", "a-\n", "a\n", "\t", "a  ", " ", "的", "a"])
def test_a_page_of_one_mark_is_read_fast(part: str) -> None:
    start = time.process_time()
    list(read_paragraphs(part * (100_000 // len(part))))
    assert time.process_time() - start < 10
