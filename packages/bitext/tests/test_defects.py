"""Encoding damage, repetitions and letters of a line."""

from __future__ import annotations

import pytest

from bitext.defects import _badly_decoded, damage, letters_of, repeats, unreadable

SOUND = [
    "Ein Mann läuft über die Straße und grüßt.",
    "„MENÜ“ stand über der Tür.",
    "Ça coûte 5 € — n’est-ce pas ? « Voilà », dit-il, à l’œuvre.",
    "CAFÉ» et «ÎLE»",
    "« café\xa0» et «thé»…",
    "SÃO PAULO, AMANHÃ”, 10 Å²",
    "¿Qué? ¡Mañana! El niño (año 1999) dijo: «sí».",
    "난 톰이 나한테 말한 모든 것을 기억했으면 좋겠어.",
    "東京で会いましょう。何時？",
    "Žluťoučký kůň úpěl ďábelské ódy",
    "What? Why?",
    "Really?? No!!",
    "R&D at AT&T; Q&A",
    "naïve façade, Ångström, smörgåsbord, Kraków",
    "",
]
DAMAGED = {
    "misread": [text.encode(codec).decode("latin-1") for text in SOUND[7:8] for codec in ("cp949", "utf-8")],
    "lost": ["Der Hund l\ufffduft", "???? ??? ???.", "????? a", "??? ab\u2003?"],
    "question": ["Der Hund l?uft", "Die Stra?e"],
    "entities": ["jalape&ntilde;o", "a&hellip;", "Tom &amp; Mary", "don&#39;t", "&quot;no&quot;", "a&#x27;b"],
}


@pytest.mark.parametrize("text", [*SOUND, "?? abc ?", "????"])
def test_sound_text_is_not_damaged(text: str) -> None:
    assert damage(text) is None


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in DAMAGED.items() for text in texts])
def test_damage_is_recognised_by_its_kind(kind: str, text: str) -> None:
    assert damage(text) == kind


@pytest.mark.parametrize("codec", ["latin-1", "cp1252"])
@pytest.mark.parametrize("text", ["Der Hund läuft über die Straße.", "Ça va à l'école", "mañana", "it’s “here”"])
def test_utf_8_decoded_as_latin_1_or_cp1252_is_damage(text: str, codec: str) -> None:
    assert damage(text.encode().decode(codec, errors="replace")) in ("misread", "lost")
    if "”" not in text:  # a byte of which Windows-1252 has no character
        assert damage(text.encode().decode(codec)) == "misread"


@pytest.mark.parametrize("text", ["اللغة العربية", "של", "नमसते", "so 😀"])
def test_letters_of_every_script_that_were_read_as_latin_are_damage(text: str) -> None:
    assert damage(text) is None
    assert damage(text.encode().decode("cp1252")) == "misread"


@pytest.mark.parametrize(
    "text", ["no no no no", "der Hund und der Hund und der Hund und der Hund und", "하하하하하하하하하", "a b " * 4]
)
def test_repetitions_are_found(text: str) -> None:
    assert repeats(text)


@pytest.mark.parametrize("text", ["no no no", "the dog and the cat and the cow", "Hahaha", "1000000", "so so good"])
def test_text_that_repeats_little_is_no_repetition(text: str) -> None:
    assert not repeats(text)


def test_letters_are_extracted() -> None:
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
