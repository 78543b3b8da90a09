"""Damaged encodings are recognised, damaged lines are counted by kind, and near copies differ from copies."""

from __future__ import annotations

import random

import pytest

from manyheads.checks.lines import LineCounts, NearCopies
from manyheads.data.corpus import Pair
from manyheads.data.defects import damage
from transformer_doctor.checks.splits import _LONG_ENOUGH

SOUND = [
    "Ein Mann läuft über die Straße und grüßt.",
    "„MENÜ“ stand über der Tür.",
    "Ça coûte 5 € — n’est-ce pas ? « Voilà », dit-il, à l’œuvre.",
    "CAFÉ» et «ÎLE»",
    "¿Qué? ¡Mañana! El niño (año 1999) dijo: «sí».",
    "난 톰이 나한테 말한 모든 것을 기억했으면 좋겠어.",
    "東京で会いましょう。何時？",
    "Žluťoučký kůň úpěl ďábelské ódy",
    "What? Why?",
    "Really?? No!!",
    "R&D at AT&T; Q&A",
    "naïve façade, Ångström, smörgåsbord",
    "",
]


@pytest.mark.parametrize("text", SOUND)
def test_sound_text_is_not_damaged(text: str) -> None:
    assert damage(text) is None


@pytest.mark.parametrize("codec", ["latin-1", "cp1252"])
@pytest.mark.parametrize("text", ["Der Hund läuft über die Straße.", "Il était une forêt", "mañana", "it’s “here”"])
def test_utf8_read_as_a_latin_encoding_is_misread(text: str, codec: str) -> None:
    assert damage(text.encode().decode(codec, errors="replace")) in ("misread", "lost")
    if "”" not in text:  # a byte of which Windows-1252 has no character
        assert damage(text.encode().decode(codec)) == "misread"


@pytest.mark.parametrize("text", ["안녕하세요 여러분", "고양이가 자고 있다."])
def test_korean_bytes_read_as_latin_are_misread(text: str) -> None:
    assert damage(text.encode("cp949").decode("latin-1")) == "misread"
    assert damage(text.encode().decode("latin-1")) == "misread"


def test_lost_letters_are_recognised() -> None:
    assert damage("Der Hund l\ufffduft") == "lost"
    assert damage("???? ??? ???.") == "lost"
    assert damage("Der Hund l?uft") == "question"
    assert damage("Die Straße".encode("ascii", "replace").decode()) == "question"


def test_html_entities_are_recognised() -> None:
    for text in ("Tom &amp; Mary", "don&#39;t", "&quot;no&quot;", "a&#x27;b"):
        assert damage(text) == "entities"


def test_three_or_more_damaged_lines_are_named_with_their_line_numbers() -> None:
    counts = LineCounts()
    for line in range(1, 11):
        counts.add("lost \ufffd letter" if line > 7 else "sound", line)
    (finding,) = counts.findings("train")
    assert (finding.name, finding.severity) == ("encoding-damaged", "error")
    assert finding.evidence.startswith('train: 3 of 10 (30 %) lines have lost letters; line 8: "lost')
    fewer = LineCounts()
    fewer.add("\ufffd", 1)
    assert not list(fewer.findings("train"))


def test_a_near_copy_differs_in_one_word_and_an_exact_copy_is_none() -> None:
    held_out = [Pair("one two three four five", "a b", 1), Pair("six seven eight nine", "c", 2)]
    near = NearCopies({"valid": held_out})
    near.add(Pair("one two three four six", "a b", 9))
    near.add(held_out[1])
    (finding,) = near.findings("valid", 2)
    assert "1 of 2 (50 %)" in finding.evidence
    assert "line 1:" in finding.evidence


def test_near_copies_are_those_of_a_comparison_of_all_words() -> None:
    rng = random.Random(1)
    pairs = [Pair(" ".join(rng.choices("abc", k=rng.randint(0, 6))), "d", line) for line in range(300)]
    held_out, train = pairs[:60], pairs[60:]
    near = NearCopies({"valid": held_out[:30], "test": held_out[30:]})
    for pair in train:
        near.add(pair)
    expected = {
        index
        for index, held in enumerate(held_out)
        for pair in train
        if held.source != pair.source and is_near(held.source.split(), pair.source.split())
    }
    assert near.copied == {
        "valid": {index for index in expected if index < 30},
        "test": {index - 30 for index in expected if index >= 30},
    }
    assert 0 < len(expected) < 60


def is_near(words: list[str], others: list[str]) -> bool:
    """Return whether texts of one length differ in at most one word; the target adds a word to those required."""
    differing = sum(word != other for word, other in zip(words, others, strict=False))
    return len(words) == len(others) and differing <= (len(words) >= _LONG_ENOUGH - 1)


@pytest.mark.parametrize(
    ("text", "lost"), [("????? a", True), ("??? ab\u2003?", True), ("?? abc ?", False), ("????", False)]
)
def test_a_line_of_mostly_question_marks_has_lost_its_letters(text: str, lost: bool) -> None:
    assert (damage(text) == "lost") is lost
