"""Languages are identified by their characters."""

from __future__ import annotations

import json
import math

import pytest

from manyheads.data.builtin import builtin_pairs
from manyheads.text.languages import (
    _MAX_SEQUENCE,
    LanguageProfile,
    _plain,
    confidences,
    make_profile,
)


def sentences(name: str, split: str, count: int) -> tuple[list[str], list[str]]:
    pairs = builtin_pairs(name, split, source=name.partition("-")[0], target="en")
    chosen = [pair for pair, _ in zip(pairs, range(count), strict=False)]
    return [pair.source for pair in chosen], [pair.target for pair in chosen]


@pytest.fixture(scope="module")
def profiles() -> dict[str, LanguageProfile]:
    german, english = sentences("de-en", "train", 400)
    korean, _ = sentences("ko-en", "train", 400)
    return {"de": make_profile(german), "en": make_profile(english), "ko": make_profile(korean)}


def test_nearly_every_new_sentence_is_recognised(profiles: dict[str, LanguageProfile]) -> None:
    german, english = sentences("de-en", "test", 150)
    korean, _ = sentences("ko-en", "test", 150)
    for language, texts in (("de", german), ("en", english), ("ko", korean)):
        correct = sum(confidences(text, profiles)[0][0] == language for text in texts)
        assert correct >= 148


def test_probabilities_of_the_next_character_sum_to_one(profiles: dict[str, LanguageProfile]) -> None:
    profile = profiles["de"]
    known = {sequence for sequence in profile.counts if len(sequence) == 1}
    for history in ("", "e", "ch", "qx"):
        total = math.fsum(profile.probability(history, character) for character in known)
        assert 0.99 < total <= 1 + 1e-9  # the rest is for characters that were never seen


def test_confidences_are_shares_in_descending_order(profiles: dict[str, LanguageProfile]) -> None:
    found = confidences("Unser müder Vater hofft, dass die Sängerinnen singen.", profiles)
    assert {language for language, _ in found} == {"de", "en", "ko"}
    assert [share for _, share in found] == sorted((share for _, share in found), reverse=True)
    assert 0.8 < found[0][1] <= 1
    assert sum(share for _, share in found) <= 1 + 1e-9


def test_text_in_an_unknown_language_has_low_confidence(profiles: dict[str, LanguageProfile]) -> None:
    assert confidences("Это предложение на русском языке.", profiles)[0][1] < 0.2
    assert confidences("12 + 3 = 15 🙂", profiles) == []
    assert confidences("Hund", {}) == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Der Hund heißt 바둑이.", "de"),
        ("Der Hund: 작은 강아지가 눈밭을 뛰어다닌다.", "ko"),
        ("Der Hund: собака бежит по снегу.", None),
        ("собака, 개가 눈밭을 뛰어다닌다", "ko"),
    ],
)
def test_a_text_that_mixes_scripts_is_in_a_language_of_most_of_its_letters(
    profiles: dict[str, LanguageProfile], text: str, language: str | None
) -> None:
    best, share = confidences(text, profiles)[0]
    assert (best if share else None) == language


def test_rare_letters_of_another_script_are_no_script_of_a_language() -> None:
    assert make_profile(["Ein Hund läuft durch den Schnee."] * 20 + ["안녕"]).scripts == {"LATIN"}
    assert make_profile(["犬が走っている。", "データ"]).scripts >= {"CJK", "HIRAGANA", "KATAKANA"}


def test_a_profile_is_small_and_survives_json(profiles: dict[str, LanguageProfile]) -> None:
    again = LanguageProfile.from_json(json.loads(json.dumps(profiles["ko"].to_json())))
    assert again.counts == profiles["ko"].counts
    assert max(map(len, again.counts)) == _MAX_SEQUENCE
    assert len(again.counts) <= 4_000
    for wrong in ([], {"abcd": 1}, {"a": 0}, {"a": "1"}, {"": 1}):
        with pytest.raises(ValueError, match="no profile"):
            LanguageProfile.from_json(wrong)


def test_case_punctuation_and_digits_do_not_count() -> None:
    assert _plain("Ein\u00a0HUND, 3 Hunde!") == " ein hund hunde "
    assert make_profile(["Hund."]).counts == make_profile(["HUND 7"]).counts
