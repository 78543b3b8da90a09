"""Encoding damage, repetitions and letters of a line."""

from __future__ import annotations

import pytest

from manyheads.data.defects import _badly_decoded, damage, letters_of, repeats, unreadable


@pytest.mark.parametrize("text", ["Schöne Grüße aus Köln", "Ça va à l'école", "Kraków", "안녕하세요"])
@pytest.mark.parametrize("codec", ["latin-1", "cp1252"])
def test_utf_8_decoded_as_latin_1_or_cp1252_is_damage(text: str, codec: str) -> None:
    assert damage(text) is None
    assert damage(text.encode().decode(codec, errors="replace")) in ("misread", "lost")


def test_repetitions_are_found_and_letters_are_extracted() -> None:
    assert repeats("so so so so so")
    assert not repeats("so so good")
    assert letters_of("Ein Hund, 3!") == "einhund3"


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        *(("Schöne Grüße für dich", codec) for codec in ("cp1250", "cp1251", "mac_roman", "cp437", "cp850", "gbk")),
        *(("안녕하세요, 반갑습니다", codec) for codec in ("cp1250", "mac_roman", "cp437", "cp949")),
        ("Привет, как дела сегодня?", "cp1251"),
    ],
)
def test_utf_8_decoded_in_rarer_encodings_is_damage(text: str, codec: str) -> None:
    assert not _badly_decoded(text)
    assert _badly_decoded(text.encode().decode(codec, errors="replace"))


@pytest.mark.parametrize("codec", ["cp1251", "mac_roman", "cp437", "utf-8", "gbk"])
def test_latin_1_decoded_in_another_encoding_is_damage(codec: str) -> None:
    assert _badly_decoded("Die Brücke für alle über dem Fluss".encode("latin-1").decode(codec, errors="replace"))


@pytest.mark.parametrize(
    "text",
    [
        "Pán píská na píšťalku, éšť íšť.", "Die Maβnahme ist groβ.", "mget和mput命令", "TV를 켰다.",
        "Ångström, Čech, łódź",
        "Δt und αβ", "„Äußerung“ – «Été» …", "Kann das sein? ja.", "Was?! Nein.",
    ],
)  # fmt: skip
def test_correct_text_is_readable(text: str) -> None:
    assert not unreadable(text)


@pytest.mark.parametrize("text", ["Sch?ne Gr??e", "Sch&#246;ne Gr&uuml;&szlig;e", "Sch\\u00f6ne Tage", "sch\x9ane"])
def test_lost_and_escaped_letters_are_unreadable(text: str) -> None:
    assert unreadable(text)
    assert not unreadable("https://a.org/q?b=c&d")
