"""Literals, which are copied unchanged, and the spans between them, which are translated."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.literals import placeholders_of, spans_to_translate


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Ein Hund läuft.", ["Ein Hund läuft."]),
        ("Siehe https://example.org/a?b=1, wenn du willst.", ["Siehe", "wenn du willst."]),
        ("https://example.org/a?b=1", []),
        ("Hallo 😀👍🏽!", ["Hallo"]),
        ("<b>Hallo <i class='x'>Welt</i></b>!", ["Hallo", "Welt"]),
        ("Frag Tom (tom@x.org).", ["Frag Tom"]),
        ("Hallo {name}, {{x}} %s %1$s %(n)s ${a} __NAME__ @tom", ["Hallo"]),
        ("서울은 https://a.b/c에서 보세요.", ["서울은", "에서 보세요."]),
        ("„www.x.org“ sagte er.", ["sagte er."]),
        ("Das kostet $1 mehr", ["Das kostet", "mehr"]),
        ("Am __DATE__ kommt er", ["Am", "kommt er"]),
        ("Ruf +49 (30) 1234-5678 an!", ["Ruf", "an!"]),
        ("Ab v7.1.17 geht es.", ["Ab", "geht es."]),
        ("1 + 1 = 2, C++ und V8, 3+4567", ["1 + 1 = 2, C++ und V8, 3+4567"]),
        ("17:45", []),
        (" * * * ", []),
        ("", []),
        ("Tom kam um 17:45 Uhr.", ["Tom kam um 17:45 Uhr."]),
        ("100 % sicher, x < y und y > z, a@b", ["100 % sicher, x < y und y > z, a@b"]),
        ("Das kostet 5 $ oder $2.50.", ["Das kostet 5 $ oder $2.50."]),
    ],
)
def test_spans_to_translate_leave_out_literals(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in spans_to_translate(text)] == parts


@given(st.text(alphabet="ab <>{}@.:/wh1😀가 \n", max_size=40))
def test_the_spans_are_in_order_and_hold_letters(text: str) -> None:
    spans = spans_to_translate(text)
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(any(map(str.isalpha, text[start:end])) for start, end in spans)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Siehe https://example.org/a?b=1, wenn du willst.", ["https://example.org/a?b=1"]),
        ("(www.x.org) tom@x.org", ["www.x.org", "tom@x.org"]),
        ("<b>{name}</b> %(n)s %1$s ${a}", ["<b>", "{name}", "</b>", "%(n)s", "%1$s", "${a}"]),
        ("$1 @tom __NAME__ 😀 5 % 17:45", []),
    ],
)
def test_placeholders_are_the_literals_that_both_languages_share(text: str, expected: list[str]) -> None:
    assert placeholders_of(text) == expected
