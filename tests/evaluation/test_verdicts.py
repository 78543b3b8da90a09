"""Verdicts change at their thresholds, and nowhere else."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import manyheads
from korean_evidence import expect_korean_verdicts, stale_sentences
from manyheads.config.load import parse_config
from manyheads.evaluation import BootstrapResult, ClassScores
from manyheads.evaluation.outputs import Output
from manyheads.evaluation.verdicts import (
    judge_bits,
    judge_bleu,
    judge_classes,
    judge_comparison,
    judge_empty,
    judge_loss,
    judge_outputs,
    judge_overlap,
    judge_untrained,
    shares_nothing,
)
from manyheads.results import Note, verdict_lines
from transformer_doctor.texts import load_sentences, placeholders

SENTENCES = load_sentences("manyheads.evaluation", "verdicts")
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


@pytest.fixture(autouse=True)
def verdicts_in_korean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Expect that every verdict has a Korean form."""
    module = sys.modules[__name__]
    judges = [(module, name) for name in vars(module) if name.startswith("judge_")]
    yield from expect_korean_verdicts(monkeypatch, SENTENCES, *judges)


def test_no_korean_sentence_is_stale_and_each_has_its_placeholders() -> None:
    assert stale_sentences(SENTENCES, Path(manyheads.__file__).parent.rglob("*.py")) == []
    assert all(placeholders(english) == placeholders(korean) for english, korean in SENTENCES.items())


CONFIG = parse_config({"data": {"source": "de", "target": "en"}}, origin="test")


@pytest.mark.parametrize(
    ("bleu", "words"),
    [
        (0.0, "not yet a usable translator"),
        (9.99, "not yet a usable translator"),
        (10.0, "the gist is hard to get"),
        (20.0, "the gist is clear, with serious mistakes"),
        (30.0, "understandable to good"),
        (40.0, "of high quality"),
        (50.0, "of very high quality"),
        (60.0, "nearly the references"),
        (100.0, "nearly the references"),
    ],
)
def test_bleu_is_described_by_its_band(bleu: float, words: str) -> None:
    text = judge_bleu(bleu, (bleu - 1, bleu + 1), 100, SIGNATURE, "en")
    assert text.startswith(
        f"BLEU is {bleu - 1:.1f} to {bleu + 1:.1f} with 95 % confidence on these 100 sentences. "
    )
    assert words in text
    assert isinstance(text, Note) is (30 <= bleu < 60), "a note asks for no action"


@pytest.mark.parametrize(
    ("loss", "validation_loss", "updates", "cause"),
    [
        (5.2, 5.0, 70, "The training had 70 updates; most need 1,000 or more. Train longer"),
        (
            8.1,
            5.0,
            70,
            "this text is unlike that of the training. Are both files in the languages",
        ),
        (8.1, 2.0, 9_000, "this text is unlike that of the training"),
        (2.1, 2.0, 9_000, "manyheads doctor RUN looks for the reason"),
        (2.1, None, 0, "manyheads doctor RUN looks for the reason"),
    ],
)
def test_outputs_that_share_nothing_with_the_references_have_one_verdict_with_its_cause(
    loss: float, validation_loss: float | None, updates: int, cause: str
) -> None:
    assert shares_nothing(1.99, 19.9)
    assert not shares_nothing(2.0, 19.9)
    assert not shares_nothing(0.5, 45.0), "in Thai, whole sentences count as words of BLEU"
    text = judge_untrained(0.02, loss, validation_loss, updates)
    assert text.startswith("BLEU is 0.0: the outputs share next to nothing with the references. ")
    assert cause in text


@pytest.mark.parametrize(
    ("sentences", "signature", "language", "words"),
    [
        (99, SIGNATURE, "en", "too few for a verdict. Use at least 100 sentences"),
        (100, SIGNATURE.replace("13a", "zh"), "zh", "counts characters here"),
        (100, SIGNATURE.replace("13a", "char"), "ja", "counts characters here"),
        (100, SIGNATURE, "ko", "low even for good translations: see chrF"),
        (100, SIGNATURE, "kor_Hang", "low even for good translations: see chrF"),
        (100, SIGNATURE, "tha", "low even for good translations: see chrF"),
        (100, SIGNATURE, "ko-Latn", "not yet a usable translator"),
        (100, SIGNATURE.replace("13a", "ko-mecab"), "ko", "not yet a usable translator"),
    ],
)
def test_bleu_is_not_described_where_the_bands_do_not_hold(
    sentences: int, signature: str, language: str, words: str
) -> None:
    text = judge_bleu(5.0, (4.0, 6.0), sentences, signature, language)
    assert words in text
    assert ("usable" in text) is ("usable" in words)


def test_a_loss_is_compared_with_a_blind_guess() -> None:
    assert "is no better than a blind guess among 8,000 tokens" in judge_loss(math.log(8000), 8000)
    assert "perplexity 7.39: the model is as uncertain about each token as among 7.39 equally" in judge_loss(
        2.0, 8000
    )
    assert "no better" in judge_loss(1e6, 8000)
    assert [isinstance(judge_loss(loss, 8000), Note) for loss in (2.0, 1e6)] == [True, False]


def test_bits_are_compared_with_no_model() -> None:
    assert "worse" not in "".join(judge_bits(7.99))
    assert "That is worse than no model" in "".join(judge_bits(8.0))


def outputs(count: int, broken: int, text: str = "") -> list[Output]:
    line = "a big dog runs over the green lawn"
    return [
        Output(number, f"ein Hund {number} rennt weit", line, text if number > count - broken else line, True)
        for number in range(1, count + 1)
    ]


def test_outputs_with_a_defect_are_counted_with_their_share_and_first_line() -> None:
    (few,) = judge_outputs(outputs(100, 3), CONFIG, 20.0)
    assert few == "outputs that are empty: 3 of 100 (3.0%), the first in line 98. So few are no reason to worry"
    (many,) = judge_outputs(outputs(100, 4), CONFIG, 20.0)
    assert many.startswith("outputs that are empty: 4 of 100 (4.0%), the first in line 97. Train longer. ")
    assert "; or set search.length_penalty = 1.5 or search.beam_size = 1" in many
    (one,) = judge_outputs(outputs(10, 1), CONFIG, 20.0)
    assert one.endswith("So few are no reason to worry")
    assert [isinstance(sentence, Note) for sentence in (few, many, one)] == [True, False, True]


def test_a_translator_that_is_not_usable_yet_gets_no_advice_on_its_search() -> None:
    for bleu, advised in ((9.9, False), (10.0, True)):
        for found in judge_outputs(outputs(100, 50), CONFIG, bleu):
            assert "Train longer" in found
            assert ("search." in found) is advised


def test_sound_outputs_are_reported_as_sound() -> None:
    assert list(judge_outputs(outputs(10, 0), CONFIG, 20.0)) == [
        "no output is empty, unfinished, a repetition, a copy of its source, or of an odd length"
    ]


@pytest.mark.parametrize(
    ("characters", "words"), [(79, "too short"), (80, "no output"), (125, "no output"), (126, "too long")]
)
def test_outputs_that_are_all_a_little_short_or_long_are_named(characters: int, words: str) -> None:
    text = ("ab cd ef gi kl " * 10)[: characters - 1] + "x"
    assert any(
        words in sentence for sentence in judge_outputs([Output(1, "s", "r" * 100, text, True)], CONFIG, 20.0)
    )


def test_lines_without_text_are_counted_and_no_output_is_blamed_for_them() -> None:
    sentences = list(judge_empty({"sources": ["a", "b"], "references": ["a", "\u200b"], "other": []}))
    assert sentences == [
        "1 of 2 references have no text, the first in line 2: no output is right there, and the scores are too "
        "low. Fill these lines, or remove them from both sides"
    ]
    lines = [Output(n, "ein Satz", "" if n % 2 else "a line", "a line", True) for n in range(1, 99)]
    assert not any(
        "length_penalty" in sentence or "than" in sentence for sentence in judge_outputs(lines, CONFIG, 20.0)
    )
    assert list(judge_outputs([Output(1, "", "", "", True)], CONFIG, 20.0)) == []


def test_pairs_seen_in_training_make_the_scores_too_high() -> None:
    assert judge_overlap(0, 50, 1000) == "none of the 50 pairs is among the 1,000 training pairs that were compared"
    assert judge_overlap(5, 50, 1000).startswith("5 of 50 pairs (10.0%) are among the 1,000 training pairs")
    assert "the scores are too high" in judge_overlap(1, 50, 1000)


def classes(right: list[int], predicted: list[int], sure: float = 1.0) -> ClassScores:
    probabilities = np.full((len(right), 3), (1 - sure) / 2)
    probabilities[np.arange(len(right)), predicted] = sure
    return ClassScores.of(probabilities, np.array(right), ["good", "bad", "so-so"])


def test_a_classifier_is_compared_with_the_most_frequent_label() -> None:
    truth = [0] * 60 + [1] * 40
    better, *_ = judge_classes(classes(truth, [0] * 55 + [1] * 45))
    assert 'always answering "good" gives 60.0%: the classifier is better than that' in better
    same, missed, *_ = judge_classes(classes(truth, [0] * 100))
    assert "is not clearly better" in same
    assert missed.startswith('never recognised: "bad".')
    close, *_ = judge_classes(classes(truth, [0] * 66 + [1] * 34))
    assert "better than that" in close
    chance, *_ = judge_classes(classes(truth, [0] * 95 + [1] * 5))
    assert "is not clearly better" in chance


def test_few_texts_do_not_show_a_better_classifier() -> None:
    few, *_ = judge_classes(classes([0, 1], [0, 1]))
    assert "is not clearly better" in few


def test_miscalibrated_probabilities_are_named() -> None:
    truth = [0] * 60 + [1] * 40
    assert not any("probabilities" in text for text in judge_classes(classes(truth, truth, 0.91)))
    assert any("off by 11%" in text for text in judge_classes(classes(truth, truth, 0.89)))


def result(
    difference: float, half: float, p_value: float = 0.01, metric: str = "bleu", lines: int = 500
) -> BootstrapResult:
    interval = (difference - half, difference + half)
    return BootstrapResult(metric, "", 20 + difference, 20, difference, interval, 0.9, p_value, 1000, 1, (), lines)


def test_the_better_system_is_named_by_each_metric() -> None:
    both = list(judge_comparison("A", "B", [result(1.0, 0.5), result(0.9, 0.5, metric="chrf")]))
    assert [text.partition(":")[0] for text in both] == ["A is better by BLEU", "A is better by chrF"]
    worse = list(judge_comparison("A", "B", [result(-1.0, 0.5)]))
    assert worse[0].startswith("B is better by BLEU: a difference of 1.00 ")
    split = list(judge_comparison("A", "B", [result(1.0, 0.5), result(-0.9, 0.5, metric="chrf")]))
    assert split[-1] == "the metrics disagree: read the outputs of both"


def test_a_difference_is_undecided_by_p_or_by_its_interval() -> None:
    assert result(1.0, 0.99, 0.049).significant
    assert not result(1.0, 0.99, 0.05).significant
    assert not result(1.0, 1.0, 0.01).significant
    assert replace(result(-1.0, 0.5), interval=(-1.5, -0.5)).significant


def test_the_number_of_lines_needed_follows_the_normal_distribution() -> None:
    """A standard error of 1 at 500 lines is 1 / sqrt(k) at k x 500; 2.8 of them find four of five differences."""
    undecided = result(1.0, 1.96, 0.3)
    assert undecided.lines_needed == pytest.approx(500 * 2.8**2)
    (text,) = judge_comparison("A", "B", [undecided])
    assert text == (
        "undecided by BLEU: a difference of 1.00 can be chance on 500 lines. If it is real, about 4,000 lines "
        "would show it"
    )


def test_a_tiny_difference_is_reported_as_equal() -> None:
    (text,) = judge_comparison("A", "B", [result(0.1, 1.96, 0.9)])
    assert text.endswith("more than 100 times as many would be needed: treat both as equal")
    (same,) = judge_comparison("A", "B", [result(0.0, 0.0, 1.0)])
    assert same == "BLEU is the same for A and B"


def test_the_estimate_holds_for_simulated_systems() -> None:
    """Four of five tests with the estimated number of lines find the difference."""
    rng, found = np.random.default_rng(1), 0
    needed = BootstrapResult("bleu", "", 0, 0, 0.1, (0.1 - 0.196, 0.1 + 0.196), 0, 1, 1, 1, (), 100).lines_needed
    for _ in range(2000):
        differences = rng.normal(0.1, 1.0, round(needed))
        found += differences.mean() > 1.96 * differences.std() / math.sqrt(len(differences))
    assert 0.77 < found / 2000 < 0.83


def test_each_verdict_is_a_line() -> None:
    lines = verdict_lines(["a", Note("b")])
    assert lines == ["verdict: a", "verdict: b"]
    assert [isinstance(line, Note) for line in lines] == [False, True]
