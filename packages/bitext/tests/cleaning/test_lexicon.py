"""Word translations are learned from the pairs, and distinguish translations from exchanged lines."""

from __future__ import annotations

import numpy as np

from bitext.cleaning.codes import encode_lines
from bitext.cleaning.lexicon import learn_lexicons, score_pairs
from dirty_pairs import clean_pairs

GERMAN = ["der hund schläft", "der hund frisst", "die katze schläft", "die katze frisst", "ein haus brennt"] * 4
ENGLISH = ["the dog sleeps", "the dog eats", "the cat sleeps", "the cat eats", "a house burns"] * 4


def test_a_translation_scores_above_an_unrelated_line() -> None:
    lexicons = learn_lexicons(encode_lines(GERMAN), encode_lines(ENGLISH))
    held_out = np.zeros(2, np.bool_)
    scores = score_pairs(
        lexicons,
        encode_lines(["der hund schläft"] * 2),
        encode_lines(["the dog sleeps", "a house burns"]),
        held_out,
    )
    assert scores[0] > 0.5 > -0.5 > scores[1]


def test_alignment_links_of_a_pair_are_left_out_of_its_own_score() -> None:
    source, target = encode_lines([*GERMAN, "xyz uvw"]), encode_lines([*ENGLISH, "rst opq"])
    lexicons = learn_lexicons(source, target)
    learned = np.arange(len(source)) == len(source) - 1
    fitted = score_pairs(lexicons, source, target, ~learned)[-1]
    assert fitted > 3  # its words occur nowhere else, so the lexicon knows them from this pair alone
    assert score_pairs(lexicons, source, target, learned)[-1] < 0.5


def test_most_exchanged_pairs_score_below_most_true_ones() -> None:
    pairs = clean_pairs()
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    targets[::5] = targets[::5][1:] + targets[::5][:1]
    scores = score_pairs(
        learn_lexicons(encode_lines(sources), encode_lines(targets)),
        encode_lines(sources),
        encode_lines(targets),
        np.ones(len(pairs), np.bool_),
    )
    exchanged = np.arange(len(pairs)) % 5 == 0
    assert np.median(scores[exchanged]) < np.quantile(scores[~exchanged], 0.1)


def test_scores_do_not_depend_on_neighbouring_lines_and_lines_without_words_score_0() -> None:
    lexicons = learn_lexicons(encode_lines(GERMAN), encode_lines(ENGLISH))
    lines = ["der hund", "", "1 2 3", "die katze frisst"], ["the dog", "the cat", "", "a"]
    together = score_pairs(lexicons, encode_lines(lines[0]), encode_lines(lines[1]), np.zeros(4, np.bool_))
    alone = [
        score_pairs(lexicons, encode_lines([s]), encode_lines([t]), np.zeros(1, np.bool_))[0]
        for s, t in zip(*lines, strict=True)
    ]
    assert np.array_equal(together, np.array(alone))
    assert together[1] == together[2] == 0
