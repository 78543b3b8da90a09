"""Each rule finds its defect, and leaves pairs alone that look like it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.data.cleaning.corpus import clean_pairs

from manyheads.data.cleaning.rules import REASONS, Profile, apply_rules, learn_profile


@pytest.fixture(scope="module")
def profile() -> Profile:
    sources, targets = zip(*clean_pairs(), strict=True)
    return learn_profile(list(sources), list(targets), ("de", "en"))


def reason_of(profile: Profile, source: str, target: str, *off: str) -> str:
    reasons, _ = apply_rules([source], [target], profile, 2.2, 4.0, set(off))
    return REASONS[reasons[0]]


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (" ", "A dog.", "empty"),
        ("Ein schÃ¶ner Hund.", "A beautiful dog.", "encoding"),
        ("Zwei Hunde spielen im Garten.", "Zwei Hunde spielen im Garten.", "copy"),
        ("Ja.", "A man in a red jacket is riding his bicycle down a long street near the station.", "length"),
        ("Ein Hund läuft über die Wiese.", "A dog is running across", "cut"),
        ("Ein Hund läuft über die Wiese.", "is running across the meadow.", "cut"),
        ("Ein Hund läuft und läuft.", "A dog dog dog dog dog.", "repetition"),
        ("Es sind 12 Hunde im Garten.", "There are 13 dogs in the garden.", "numbers"),
        ("Es ist auf http://a.org/x zu sehen.", "You can see it on http://b.org/y there.", "placeholders"),
        ("Guten Tag, {name}!", "Good day, {nom}!", "placeholders"),
    ],
)
def test_a_defect_is_found(profile: Profile, source: str, target: str, reason: str) -> None:
    assert reason_of(profile, source, target) == reason
    if reason != "empty":
        assert reason_of(profile, source, target, reason) != reason


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Ein Hund läuft.", "A dog runs."),
        ("Tom Miller", "Tom Miller"),
        ("Danke schön.", "Thanks."),
        ("Es ist halb zehn.", "It is 9:30."),
        ("Es kostet 1.000,50 Euro.", "It costs 1,000.50 euros."),
        ("Guten Tag, {name}!", "Good day, {name}!"),
        ("Am 3. Mai um 14 Uhr.", "On the third of May at 14 o'clock."),
        ("Sehr, sehr gut.", "Very, very good."),
    ],
)
def test_a_good_pair_passes(profile: Profile, source: str, target: str) -> None:
    assert reason_of(profile, source, target) == "kept"


def test_marks_at_the_end_say_nothing_where_the_corpus_does_not_use_them_alike(profile: Profile) -> None:
    headlines = [("Ein Hund läuft.", "A dog runs"), ("Zwei Katzen schlafen", "Two cats sleep.")] * 20
    careless = learn_profile([pair[0] for pair in headlines], [pair[1] for pair in headlines], ("de", "en"))
    assert reason_of(careless, "Ein Hund läuft.", "A dog runs") == "kept"
    assert reason_of(profile, "Ein Hund läuft.", "A dog runs") == "cut"


def test_hardly_a_clean_pair_is_removed(profile: Profile) -> None:
    sources, targets = zip(*clean_pairs(), strict=True)
    reasons, scores = apply_rules(list(sources), list(targets), profile, 2.2, 4.0, set())
    assert (reasons > 0).mean() < 0.04
    assert scores.shape == (len(sources), 2)
    assert np.isfinite(scores).all()


def test_a_line_counts_as_foreign_from_the_given_log_odds_on(profile: Profile) -> None:
    pair = ["Le chien est dans la rue."], ["The dog is in the street."]
    _, scores = apply_rules(*pair, profile, 2.2, 4.0, set())
    odds = float(scores[0, 1])
    for limit, foreign in ((odds - 0.5, True), (odds + 0.5, False)):
        reasons, _ = apply_rules(*pair, profile, 2.2, limit, set())
        assert (REASONS[reasons[0]] == "language") is foreign
