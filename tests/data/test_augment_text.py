"""Augmented pairs: both sides stay translations of each other, and copied text is on both sides."""

from __future__ import annotations

import re
from random import Random

import pytest

from manyheads.data import augment_text as module
from manyheads.data.augment_text import (
    add_copy,
    add_placeholders,
    change_end_mark,
    drop_capital,
    linked_words,
    lower_source,
    misspell,
    to_capitals,
)

SOURCE, TARGET = "Der große Hund läuft nach Hause.", "The big dog runs home."
WORDS = {"hund": "dog", "drei": "three", "neue": "new", "bälle": "balls"}
PAIR = "Der Hund hat drei neue Bälle.", "The dog has three new balls."
LINKS = {"hund": "dog", "hause": "home", "katze": "cat"}


def test_functions_that_change_case_change_the_sides_in_their_name() -> None:
    assert to_capitals("Straße", "Street") == ("STRASSE", "STREET")
    assert lower_source("Das Haus", "The House") == ("das haus", "The House")
    assert drop_capital("Das Haus", "The House") == ("das Haus", "The House")


def test_case_is_changed_as_the_languages_of_the_sides_write_it() -> None:
    assert to_capitals("iğne", "ısı ist", ("tr", "de")) == ("İĞNE", "ISI IST")
    assert lower_source("Isı", "It", ("tr", "en")) == ("ısı", "It")
    assert drop_capital("Isı", "It", ("tr", "en")) == ("ısı", "It")
    (linked,) = linked_words("Isı iyi", "Heat is good", {"ısı": "heat"}, ("tr", "en"))
    assert [word[0] for word in linked] == ["Isı", "Heat"]


@pytest.mark.parametrize(
    ("pair", "languages", "expected"),
    [
        (("Gut.", "Good!"), ("de", "en"), ("Gut", "Good")),
        (("Gut", "Good"), ("de", "en"), ("Gut.", "Good.")),
        (("お元気", "Fine"), ("ja", "en"), ("お元気。", "Fine.")),
        (("很好", "Fine"), ("cmn_Hans", "eng"), ("很好。", "Fine.")),
        (("घर", "House"), ("hin", "en"), ("घर।", "House.")),
        (("घर।", "House."), ("hin", "en"), ("घर", "House")),
        (("ครับ", "Yes"), ("tha", "en"), ("ครับ", "Yes")),
        (("Gut.", "Good"), ("de", "en"), ("Gut.", "Good")),
        (("Was ?!", "What?!"), ("de", "en"), ("Was", "What")),
        (("...", "..."), ("de", "en"), ("...", "...")),
        (("Nummer 5", "number 5"), ("de", "en"), ("Nummer 5", "number 5")),
        (("", ""), ("de", "en"), ("", "")),
    ],
)
def test_an_end_mark_is_removed_from_both_sides_or_added_to_both(
    pair: tuple[str, str], languages: tuple[str, str], expected: tuple[str, str]
) -> None:
    assert change_end_mark(*pair, languages) == expected


def test_a_misspelt_text_differs_in_one_word_and_keeps_its_first_letters() -> None:
    for seed in range(100):
        wrong = misspell("gehen laufen rennen", Random(seed)).split(" ")
        pairs = list(zip(["gehen", "laufen", "rennen"], wrong, strict=True))
        changed = [(word, other) for word, other in pairs if word != other]
        assert len(changed) <= 1
        for word, other in changed:
            assert word[0] == other[0]
            assert abs(len(word) - len(other)) <= 1
    assert misspell("ja du", Random(1)) == "ja du", "short words stay"
    assert misspell("", Random(1)) == ""


def test_a_copied_text_is_on_both_sides_and_the_rest_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "make_copy", lambda rng, scripts, **options: "@@@")
    monkeypatch.setattr(module, "make_tag", lambda rng: ("@@@", "###"))
    forms = set()
    for seed in range(300):
        source, target = add_copy(SOURCE, TARGET, Random(seed), LINKS)
        assert source.count("@@@") == target.count("@@@") == 1
        assert source.count("###") == target.count("###")
        bare = [" ".join(text.replace("@@@", " ").replace("###", " ").split()) for text in (source, target)]
        assert [text.replace(" .", ".") for text in bare] in ([SOURCE, TARGET], ["", ""])
        forms.add(target)
    assert {"@@@", f"{TARGET} @@@", f"@@@ {TARGET}", f"@@@{TARGET}###"} <= forms
    assert {"The big @@@ dog runs home.", "The big @@@dog### runs home."} <= forms, "at a linked word"


def test_no_copy_is_inserted_at_a_word_that_occurs_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "make_copy", lambda rng, scripts, **options: "@@@")
    monkeypatch.setattr(module, "make_tag", lambda rng: ("@@@", "###"))
    for seed in range(100):
        _, target = add_copy("ein Hund und ein Hund", "a dog and a dog", Random(seed), LINKS)
        assert "a dog and a dog" in target or target == "@@@"


def test_a_number_on_both_sides_is_replaced_by_the_same_other_one() -> None:
    replaced = 0
    for seed in range(100):
        source, target = add_copy("Im Jahr 1984 war er 84.", "In 1984 he was 84.", Random(seed), {})
        if source.startswith("Im Jahr ") and "1984" not in source:
            replaced += 1
            number = source.split()[2]
            assert target == f"In {number} he was 84."
    assert replaced > 30


def test_both_sides_of_a_pair_get_the_same_placeholders_in_the_place_of_words_or_around_them() -> None:
    shown = {
        tuple(re.sub("[\ufdd2-\ufdd9]", "#", side) for side in add_placeholders(*PAIR, Random(seed), WORDS))
        for seed in range(500)
    }
    assert {
        ("Der # hat drei neue Bälle.", "The # has three new balls."),
        ("Der Hund hat drei #neue Bälle.", "The dog has three #new balls."),
        ("Der Hund hat #drei# neue #.", "The dog has #three# new #."),
    } <= shown
    for seed in range(500):
        source, target = (
            re.findall("[\ufdd2-\ufdd9]", side) for side in add_placeholders(*PAIR, Random(seed), WORDS)
        )
        assert source == target == sorted(set(source)) != []


def test_placeholders_have_the_order_of_the_source_and_the_places_of_the_translations() -> None:
    for seed in range(200):
        source, target = add_placeholders("Hund neue", "new dog", Random(seed), WORDS)
        found = re.findall("[\ufdd2-\ufdd9]", source)
        if source == f"{found[0]} {found[-1]}" and len(found) == 2:
            assert target == f"{found[1]} {found[0]}"
            return
    raise AssertionError("no pair had two words replaced")


def test_a_pair_without_known_words_has_a_placeholder_at_the_same_end_of_both_sides() -> None:
    ends = {add_placeholders("Ach", "Oh", Random(seed), {}) for seed in range(100)}
    assert all(
        (source[:-1], target[:-1]) == ("Ach", "Oh") or (source[1:], target[1:]) == ("Ach", "Oh")
        for source, target in ends
    )
    assert {source.find("Ach") for source, _ in ends} == {0, 1}
