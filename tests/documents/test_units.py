from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from manyheads.documents.blocks import Token, make_block
from manyheads.documents.units import Edit, Part, Translated, Unit, apply_edits


def words(text: str) -> Iterator[Unit | Edit]:
    """Read each word in square brackets as a unit, and "lang=x" as what a translated text needs."""
    for match in re.finditer(r"\[(.+?)\]|lang=x", text):
        if match[1]:
            yield Unit(make_block([Token("text", match[1])]), match.start() + 1, match.end() - 1, between="|")
        else:
            yield Edit(*match.span(), "lang=y")


def braces(text: str) -> Iterator[Unit]:
    for match in re.finditer(r"\{(.+?)\}", text):
        yield Unit(make_block([Token("text", match[1])]), match.start() + 1, match.end() - 1)


def test_translations_stand_in_the_places_of_their_units_alone() -> None:
    part = Part("lang=x [one] - [2] - [two]", [words])
    assert [unit.text for unit in part.units] == ["one", "two"]  # without a letter there is nothing to translate
    assert part.write([Translated("eins"), Translated("zwei")]) == "lang=y [eins] - [2] - [zwei]"
    assert part.write([Translated("one"), Translated("two")]) == part.text
    assert part.write([Translated("one"), Translated("zwei")], bilingual=True) == "lang=y [one] - [2] - [two|zwei]"


def test_units_within_units_are_written_first() -> None:
    part = Part("[one] {two [three]}", [words, braces])
    assert [unit.text for unit in part.units] == ["one", "three", "two [three]"]


def test_a_reader_whose_units_change_with_the_translations_is_a_fault() -> None:
    part = Part("[one] {two [three]}", [words, braces])
    with pytest.raises(AssertionError, match="structure changed"):
        part.write([Translated("eins"), Translated("drei"), Translated("zwei")])


def test_a_unit_has_a_place_for_messages() -> None:
    part = Part("a\nb\n[one]", [words], "chapter.xhtml")
    assert part.places == ["chapter.xhtml, line 3"]


def test_edits_that_overlap_are_a_fault() -> None:
    assert apply_edits("abc", [Edit(2, 3, "C"), Edit(0, 1, "A"), Edit(1, 1, "-")]) == "A-bC"
    with pytest.raises(AssertionError, match="overlap"):
        apply_edits("abc", [Edit(0, 2, ""), Edit(1, 3, "")])
