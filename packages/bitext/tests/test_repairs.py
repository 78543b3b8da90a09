"""Text that can be read back is repaired; correct text stays as it is."""

from __future__ import annotations

import html

import pytest

from bitext.cleaning.report import REPAIR_MEANINGS
from bitext.repairs import _BYTES, REPAIRS, repair_mojibake, unescape
from dirty_pairs import sample

LETTERS = {byte: letter for letter, byte in _BYTES.items()}
LINES = [side for name in ("de-en", "ko-en") for pair in sample(name)[:400] for side in pair]


def misread(text: str, codec: str = "cp1252") -> str:
    """Return a text whose UTF-8 bytes were read as Windows-1252, or as Latin-1."""
    return "".join(LETTERS[byte] if codec == "cp1252" and byte > 0x7F else chr(byte) for byte in text.encode())


@pytest.mark.parametrize("codec", ["cp1252", "latin-1"])
def test_every_line_read_in_the_wrong_encoding_is_read_back(codec: str) -> None:
    damaged = [misread(line, codec) for line in LINES]
    assert sum(line.isascii() for line in LINES) + sum(map(str.__ne__, damaged, LINES)) == len(LINES)
    assert [*map(repair_mojibake, damaged)] == LINES
    assert [repair_mojibake(misread(line, codec)) for line in damaged] == LINES
    assert [*map(repair_mojibake, LINES)] == LINES


@pytest.mark.parametrize(
    "text",
    [
        "it’s “here” — yes…", "Zażółć gęślą jaźń", "Ça va à l'école ?", "😀 ☀ ™ €", "Привет, как дела?", "العربية",
        "“ein” » und «", "É bom",
    ],
)  # fmt: skip
def test_punctuation_emoji_and_other_scripts_are_read_back(text: str) -> None:
    assert repair_mojibake(misread(text)) == text


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("Müller fÃ¼hrt", "Müller führt"),
        ("“nÃ£o” disse", "“não” disse"),
        ("Ã“ Deus, nÃ£o", "Ó Deus, não"),
        ("donÂ’t", "don’t"),
        ("It\x92s \x96 well", "It’s – well"),
        ("HÃ”TEL", "HÔTEL"),
    ],
)
def test_damage_beside_correct_letters_is_repaired(text: str, repaired: str) -> None:
    assert repair_mojibake(text) == repaired


@pytest.mark.parametrize(
    "text",
    [
        "NÃO, AMANHÃ”", "SÃO PAULO, AMANHÃ…", "A MAÇÃ® é boa", "SÅ… JAG VET", "10 Å² und 3 Å³", "»KOM PÅ«", "HÄ…",
        "«café»…", "coborâ…”", "«ÎLE»", "Ã", "Ö", "smörgåsbord", "ÄÖÜäöüß",
        "« café\xa0» et « thé\xa0»", "MUSÍŽ", "à€€ í\xa0€", "„Ich vergaß“, nein",
        "1 °C, ½ Å", "„Ü“",
    ],
)  # fmt: skip
def test_correct_letters_before_punctuation_stay(text: str) -> None:
    assert repair_mojibake(text) == text


def test_what_html_escapes_is_unescaped_once() -> None:
    lines = [line for line in LINES if "&" not in line]
    escaped = [f"&quot;{html.escape(line)} R&amp;D&quot;" for line in lines]
    assert [*map(unescape, escaped)] == [f'"{line} R&D"' for line in lines]
    assert unescape("&amp;amp; &amp;quot;") == "&amp; &quot;"


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("Sch&#246;ne Gr&uuml;&szlig;e &ndash; ja&#x21;", "Schöne Grüße – ja!"),
        ("Sch\\u00f6ne Tage", "Schöne Tage"),
        ("a&#10;b", "a b"),
        ("<b>Tom &amp; J&uuml;rgen</b>", "<b>Tom &amp; Jürgen</b>"),
        *(
            (text, text)
            for text in (
                'Write "&amp;" for it.', "`&lt;b&gt;`", "A & B &amp; C", "AT&T; Q&A", "&bogus; &copy 2010",
                "&#0;&#xd800;", "C:\\u0041", "https://a.org/q?b=c&d=e",
            )
        ),
    ],
)  # fmt: skip
def test_entities_are_unescaped_but_not_those_that_a_text_is_about(text: str, repaired: str) -> None:
    assert unescape(text) == repaired
    assert unescape(repaired) == repaired


def test_every_repair_is_described() -> None:
    assert set(REPAIR_MEANINGS) == {*REPAIRS}
