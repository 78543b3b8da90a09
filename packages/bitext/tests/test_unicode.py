from __future__ import annotations

import unicodedata
from functools import cache

import pytest

from bitext.unicode import known, on_known


@cache
def characters() -> list[str]:
    return [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


@cache
def new_characters() -> set[str]:
    """Return the characters newer than Unicode 14."""
    return {character for character in characters() if known(character) == "\ue000" != character}


def test_characters_newer_than_unicode_14_are_the_same_in_every_python() -> None:
    unassigned = {
        c for c in characters() if unicodedata.category(c) == "Cn" and not "\U00020000" <= c < "\U00040000"
    }
    assert unassigned <= new_characters()
    if unicodedata.unidata_version == "14.0.0":
        assert unassigned == new_characters()
    assert {"\u1c89", "\U0001fae8", "\U00010d50", "\u0378"} <= new_characters()


def test_only_characters_newer_than_unicode_14_and_ideographs_are_replaced() -> None:
    assert [known(c) for c in ("\U00020000", "\U0002ebf0", "\U000323af", "\U0003ffff")] == ["\U00020000"] * 4
    others = [c for c in characters() if not "\U00020000" <= c < "\U00040000" and c not in new_characters()]
    assert known("".join(others)) == "".join(others)
    assert known("ä\U0001fae8b\U0002ebf0") == "ä\ue000b\U00020000"


@pytest.mark.parametrize(
    ("text", "upper", "title"),
    [
        ("straße", "STRASSE", "Straße"),
        ("\U0001fae8straße\U00010d70 é", "\U0001fae8STRASSE\U00010d70 É", "\U0001fae8straße\U00010d70 é"),
        ("\u0378\uffff", "\u0378\uffff", "\u0378\uffff"),
    ],
)
def test_a_change_of_case_leaves_newer_characters_in_their_place(text: str, upper: str, title: str) -> None:
    assert on_known(str.upper, text) == upper
    assert on_known(str.capitalize, text) == title


def test_compatible_ideographs_are_composed_beside_newer_characters() -> None:
    text = "\U0002f800e\u0301\U0001fae8"
    assert on_known(lambda part: unicodedata.normalize("NFC", part), text) == "\u4e3dé\U0001fae8"
