"""Lines of a third language are found; names, short phrases and lines of the side's own language are not."""

from __future__ import annotations

import numpy as np
import pytest

from bitext.cleaning.codes import encode_lines
from bitext.cleaning.language import LanguageModel, _drop_own_like, learn_languages
from dirty_pairs import FRENCH, clean_pairs

THRESHOLD = 4.0


@pytest.fixture(scope="module")
def models() -> tuple[LanguageModel, LanguageModel]:
    pairs = clean_pairs()
    targets = [target for _, target in pairs]
    targets[::20] = [FRENCH("deux") for _ in targets[::20]]
    return learn_languages((encode_lines([source for source, _ in pairs]), encode_lines(targets)), ("de", "en"))


def test_lines_of_a_third_language_and_of_the_other_side_are_found(
    models: tuple[LanguageModel, LanguageModel],
) -> None:
    lines = [
        "Il est dans la rue avec une femme.",
        "Der Mann ist auf der Straße und redet.",
        "Привет, как твои дела сегодня?",
    ]
    odds, which = models[1].score(encode_lines(lines))
    assert (odds > THRESHOLD).all()
    assert [models[1].names[index] for index in which[:2]] == ["fr", "de"]
    assert which[2] == -1


def test_lines_of_the_own_language_names_and_short_phrases_pass(
    models: tuple[LanguageModel, LanguageModel],
) -> None:
    lines = ["A man is on the street and talks to a woman.", "Tom Miller", "Berlin", "Hi!", "12:30", ""]
    assert (models[1].score(encode_lines(lines))[0] < THRESHOLD).all()
    clean = encode_lines([source for source, _ in clean_pairs()])
    assert (models[0].score(clean)[0] > THRESHOLD).mean() < 0.01


def test_a_side_in_a_script_of_its_own_is_judged_by_its_letters() -> None:
    korean = ["나는 학교에 간다", "비가 온다", "Kim", "This line is not Korean at all"]
    models = learn_languages(
        (encode_lines(korean), encode_lines(["I go to school", "It rains", "Kim", "Yes"])), ("ko", "en")
    )
    assert (models[0].score(encode_lines(korean))[0] > THRESHOLD).tolist() == [False, False, False, True]


def test_lines_that_quote_a_foreign_word_are_no_training_examples_of_its_language() -> None:
    own = [target for _, target in clean_pairs(200)]
    quoted = f"{own[0]} der"
    foreign = "Il est dans la rue avec une femme."
    lines = encode_lines([*own, quoted, foreign])
    labels = np.array([*["en"] * len(own), "de", "fr"], dtype=object)
    assert _drop_own_like(labels, "en", lines)[-2:].tolist() == ["", "fr"]


def test_few_rare_ngrams_do_not_make_a_line_foreign(models: tuple[LanguageModel, LanguageModel]) -> None:
    """The lines have foreign words, as in headlines and menus, that do not occur in the corpus."""
    lines = ["I prefer quality to quantity.", "Two men drink champagne.", "This is the Porsche of a Chancellor."]
    assert (models[1].score(encode_lines(lines))[0] < THRESHOLD).all()
