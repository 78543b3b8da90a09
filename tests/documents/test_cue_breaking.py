"""A translation is broken into the subtitles of its source, and these into lines."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.documents.cue_breaking import Slot, break_text, width
from manyheads.documents.units import Translated


def slots_of(*texts: str, columns: float = 99, line_length: int = 42, lines: int = 1) -> list[Slot]:
    starts = [len(" ".join(texts[:index])) + bool(index) for index in range(len(texts))]
    return [Slot(text, start, columns, line_length, lines=lines) for text, start in zip(texts, starts, strict=True)]


def parts(source: list[Slot], text: str, links: str | None = None) -> list[str]:
    whole = " ".join(slot.text for slot in source)
    return [part.text for part in break_text(whole, Translated(text, links), source)]


def test_words_stand_in_the_slot_of_their_aligned_words() -> None:
    slots = slots_of("He has not", "seen the dog today.")
    assert parts(slots, "Er hat den Hund nicht gesehen.", "0-0 1-1 5-2 5-3 2-4 3-5") == [
        "Er hat",
        "den Hund nicht gesehen.",
    ]
    assert parts(slots, "Heute hat er nicht gesehen.", "6-0 1-1 0-2 2-3 3-4") == ["Heute hat er nicht", "gesehen."]


def test_links_of_a_part_name_the_words_of_its_own_slot() -> None:
    slots = slots_of("one two", "three four")
    found = break_text("one two three four", Translated("DREI EINS ZWEI VIER", "2-0 0-1 1-2 3-3"), slots)
    assert found == [Translated("DREI EINS ZWEI", "0-1 1-2"), Translated("VIER", "1-0")]


def test_a_cut_is_behind_punctuation_and_not_behind_an_article_where_alignment_allows_both() -> None:
    slots = slots_of("a b c", "d e f")
    assert parts(slots, "Gestern, heute spielt", "2-0 9-1 5-2")[0] == "Gestern,"
    assert parts(slots, "Gestern sieht die Frau", "0-0 2-1 3-2 5-3") == ["Gestern sieht", "die Frau"]


@given(
    st.lists(st.text("ab", min_size=1, max_size=9), min_size=4, max_size=9),
    st.lists(st.integers(0, 5), min_size=9, max_size=9),
    st.lists(st.integers(5, 40), min_size=3, max_size=3),
)
def test_no_part_is_too_long_for_its_time_where_another_cut_prevents_it(
    words: list[str], aligned: list[int], columns: list[int]
) -> None:
    slots = [
        slot._replace(columns=most)
        for slot, most in zip(slots_of("one two", "three four", "five six"), columns, strict=True)
    ]
    links = " ".join(f"{source}-{word}" for word, source in enumerate(aligned[: len(words)]))
    found = parts(slots, " ".join(words), links)
    assert " ".join(found).replace("\n", " ") == " ".join(words)

    def fits(texts: list[str]) -> bool:
        return all(len(text) <= most for text, most in zip(texts, columns, strict=True))

    ways = (
        [" ".join(words[:first]), " ".join(words[first:second]), " ".join(words[second:])]
        for first, second in combinations(range(1, len(words)), 2)
    )
    assert fits(found) == any(map(fits, ways))


def test_fewer_words_than_slots_are_shown_again() -> None:
    assert parts(slots_of("Come", "on", "now!"), "Los jetzt!") == ["Los", "Los", "jetzt!"]
    assert parts(slots_of("Come", "on!"), "") == ["", ""]


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("Ein kurzer Satz bleibt eine Zeile.", 1, "Ein kurzer Satz bleibt eine Zeile."),
        ("Ein kurzer Satz bleibt zwei Zeilen.", 2, "Ein kurzer Satz\nbleibt zwei Zeilen."),
        ("Nein.", 2, "Nein."),
        ("", 2, ""),
        ("Wenn der Hund noch einmal bellt, gehen wir alle.", 1,
         "Wenn der Hund noch einmal bellt,\ngehen wir alle."),
        ("Sie fuhr gestern Abend mit der alten Bahn nach Haus.", 1,
         "Sie fuhr gestern Abend\nmit der alten Bahn nach Haus."),
    ],
)  # fmt: skip
def test_lines_are_balanced_or_end_in_punctuation(text: str, lines: int, expected: str) -> None:
    assert parts(slots_of("source", lines=lines), text) == [expected]


@given(st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=40))
def test_no_line_is_too_long_if_no_word_is(words: list[str]) -> None:
    (found,) = parts(slots_of("source", line_length=20), " ".join(words))
    assert max(map(len, found.split("\n"))) <= 20
    assert found.split() == words


def test_a_line_of_the_source_that_is_too_long_allows_one_as_long() -> None:
    text = " ".join(["Wort"] * 30)
    slots = [slot._replace(longest=200, columns=999) for slot in slots_of("one", "two")]
    assert parts(slots[:1], text) == [text]
    assert parts(slots, f"{text} Ende.", " ".join(f"{word == 30:d}-{word}" for word in range(31))) == [
        text,
        "Ende.",
    ]


def test_text_without_blanks_is_cut_between_letters_but_not_before_closing_marks() -> None:
    slots = slots_of("I like dogs,", "but not cats.", line_length=16)
    assert parts(slots, "我喜欢狗，可是不喜欢猫。") == ["我喜欢狗，", "可是不喜欢猫。"]
    (found,) = parts(slots_of("source", line_length=20), "「今日はスーパーへ行きました。」")
    first, second = found.split("\n")
    assert max(width(first), width(second)) <= 20
    assert second[0] not in "。」ー"


def test_width_counts_letters_of_full_width_twice() -> None:
    assert [width("abc"), width("한국"), width("e\u0301"), width("，")] == [3, 4, 1, 2]
