"""Each rule finds its defect, and keeps good pairs that look similar."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from bitext.cleaning.rules import REASONS, Profile, _have_repeated_letters, _is_copy, apply_rules, learn_profile
from bitext.defects import _REPEATED_LETTERS, letters_of
from dirty_pairs import clean_pairs


@pytest.fixture(scope="module")
def profile() -> Profile:
    sources, targets = zip(*clean_pairs(), strict=True)
    return learn_profile(list(sources), list(targets), ("de", "en"))


def reason_of(profile: Profile, source: str, target: str, *off: str) -> str:
    reasons, *_ = apply_rules([source], [target], profile, 2.2, 4.0, set(off))
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
        (
            "Der alte Mann geht am Morgen mit seinem kleinen Hund durch den Park nach Hause.",
            "The old man man man man man walks home through the park.",
            "repetition",
        ),
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


def test_missing_end_marks_are_no_defect_where_the_corpus_uses_end_marks_inconsistently(profile: Profile) -> None:
    headlines = [("Ein Hund läuft.", "A dog runs"), ("Zwei Katzen schlafen", "Two cats sleep.")] * 20
    inconsistent = learn_profile([pair[0] for pair in headlines], [pair[1] for pair in headlines], ("de", "en"))
    assert reason_of(inconsistent, "Ein Hund läuft.", "A dog runs") == "kept"
    assert reason_of(profile, "Ein Hund läuft.", "A dog runs") == "cut"
    assert reason_of(inconsistent, "Ein Hund läuft heute über die Wiese.", "A dog") == "cut"


def test_in_a_corpus_with_inconsistent_end_marks_a_side_without_one_is_cut_only_if_it_is_too_short() -> None:
    rng = random.Random(3)
    pairs, cut = clean_pairs(1_200), []
    for index in range(0, len(pairs), 5):  # a mark is missing on the one side or the other, and nothing is cut
        source, target = pairs[index]
        pairs[index] = (source.rstrip(".!?"), target) if rng.random() < 0.5 else (source, target.rstrip(".!?"))
    for index in range(1, len(pairs), 20):
        source, target = pairs[index]
        words = target.split()
        if len(words) > 5:
            pairs[index] = (source, " ".join(words[: len(words) // 3]))
            cut.append(index)
    sources, targets = map(list, zip(*pairs, strict=True))
    profile = learn_profile(sources, targets, ("de", "en"))
    reasons, *_ = apply_rules(sources, targets, profile, 1e9, 1e9, set())
    removed = reasons == REASONS.index("cut")
    assert removed[cut].mean() > 0.9
    assert np.delete(removed, cut).mean() < 0.02


def test_a_line_counts_as_foreign_above_the_given_log_odds(profile: Profile) -> None:
    pair = ["Le chien est dans la rue."], ["The dog is in the street."]
    _, scores, _ = apply_rules(*pair, profile, 2.2, 4.0, set())
    odds = float(scores[0, 1])
    for limit, foreign in ((odds - 0.5, True), (odds + 0.5, False)):
        reasons, *_ = apply_rules(*pair, profile, 2.2, limit, set())
        assert (REASONS[reasons[0]] == "language") is foreign


def test_repeated_letters_are_found_as_by_the_regular_expression() -> None:
    rng = random.Random(1)
    plain = ["".join(rng.choices("abc 한", k=rng.randrange(40))) for _ in range(97)]
    repeated = [text + "".join(rng.sample("abcdef", size)) * 8 + text for size in range(1, 7) for text in plain]
    lines = rng.sample([*plain, "", "", *repeated], len(plain) + 2 + len(repeated))
    expected = [bool(_REPEATED_LETTERS.search(line)) for line in lines]
    assert _have_repeated_letters(lines).tolist() == expected
    assert _have_repeated_letters([]).tolist() == []


def test_two_sides_with_the_same_letters_are_a_copy_whatever_their_case_and_marks() -> None:
    rng = random.Random(1)
    texts = ["".join(rng.choices("aAbß\u1e9es. ,ΐ", k=rng.randrange(1, 4))) + " a b a." for _ in range(997)]
    copies = 0
    for source, target in itertools.pairwise(texts):
        equal = letters_of(source) == letters_of(target)
        assert _is_copy(source, target, 3.0) is equal, (source, target)
        copies += equal
    assert 9 < copies < 900
