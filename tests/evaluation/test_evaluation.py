"""Scores agree with sacreBLEU, and the bootstrap with that of sacreBLEU and with a slow rewrite."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest
from sacremoses import MosesTokenizer
from tests.tolerances import approx, printed

from manyheads.errors import DataError, MissingExtraError, UsageError
from manyheads.evaluation import exact_match, paired_bootstrap, perplexity, score, scores, significance

TEXT = "The a Dog cat's sits, runs; quickly (on) the Street. 3.14 well-known “big” Zürich U.S. to and isn't"
WORDS = TEXT.split()


def lines(count: int, seed: int = 1) -> list[str]:
    """Return lines of plain text: cased words with punctuation attached."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 17))) + "." for _ in range(count)]


def with_errors(text: list[str], share: float, seed: int = 2) -> list[str]:
    """Return the lines with a share of their words dropped, doubled or replaced."""
    rng = random.Random(seed)
    changed = []
    for line in text:
        words = [
            rng.choice(["", word + " " + word, rng.choice(WORDS)]) if rng.random() < share else word
            for word in line.split()
        ]
        changed.append(" ".join(word for word in words if word))
    return changed


REFERENCES = lines(131)
OUTPUTS = with_errors(REFERENCES, 0.3)
PLAIN = score(OUTPUTS, REFERENCES)


def test_the_scores_are_those_of_the_sacrebleu_command(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("\n".join(OUTPUTS) + "\n", encoding="utf-8")
    (tmp_path / "references").write_text("\n".join(REFERENCES) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "references", "-i", "outputs", "-m", "bleu", "chrf", "ter"]
    answer = subprocess.run([*command, "-w", "9"], cwd=tmp_path, capture_output=True, text=True, check=True)
    bleu, chrf, ter = json.loads(answer.stdout)
    assert PLAIN.bleu == printed(bleu["score"], 9)
    assert PLAIN.chrf == printed(chrf["score"], 9)
    assert PLAIN.ter == printed(ter["score"], 9)
    assert PLAIN.signature == {
        "bleu": bleu["signature"],
        "chrf": chrf["signature"],
        "ter": ter["signature"],
    }
    assert 20 < PLAIN.bleu < 80
    assert PLAIN.warnings == ()


def test_a_perfect_output_has_the_best_scores() -> None:
    best = score(REFERENCES, REFERENCES)
    assert (best.bleu, best.chrf, best.ter) == pytest.approx((100, 100, 0))


def lower_tokens_of_spacy(text: list[str], language: str) -> list[str]:
    import spacy  # takes two seconds, also where this file is only collected

    tokenizer = spacy.blank(language).tokenizer
    return [" ".join(token.text.lower() for token in tokenizer(line)) for line in text]


def lower_tokens_of_moses(text: list[str], language: str) -> list[str]:
    tokenizer = MosesTokenizer(lang=language)
    return [tokenizer.tokenize(line, return_str=True, escape=False).lower() for line in text]


@pytest.mark.parametrize(
    ("protocol", "tokens_of", "language"),
    [("spacy-lowercase", lower_tokens_of_spacy, "en"), ("moses-lowercase", lower_tokens_of_moses, "de")],
)
def test_a_lowercase_protocol_scores_lower_cased_tokens_and_is_named_in_the_signature(
    protocol, tokens_of, language
) -> None:
    result = score(OUTPUTS, REFERENCES, protocol=protocol, language=f"{language}-XX")
    tokenised, wanted = tokens_of(OUTPUTS, language), [tokens_of(REFERENCES, language)]
    assert result.bleu == pytest.approx(BLEU(tokenize="none", force=True).corpus_score(tokenised, wanted).score)
    assert result.chrf == pytest.approx(CHRF().corpus_score(tokenised, wanted).score)
    assert result.ter == pytest.approx(TER().corpus_score(tokenised, wanted).score)
    assert abs(result.bleu - PLAIN.bleu) > 0.01
    for name, signature in result.signature.items():
        assert f"|protocol:{protocol}|" in signature
        assert signature.endswith(f"|lang:{language}")
        assert "protocol" not in PLAIN.signature[name]
    assert "|case:lc|" in result.signature["bleu"]
    assert "|tok:none|" in result.signature["bleu"]
    assert result.warnings == ()


def test_a_lowercase_protocol_ignores_case_on_both_sides() -> None:
    for protocol in ("spacy-lowercase", "moses-lowercase"):
        for outputs, references in ((["A DOG RUNS TO US"], ["a dog runs to us"]), (["é à o u"], ["É À O U"])):
            result = score(outputs, references, protocol=protocol)
            assert (result.bleu, result.chrf, result.ter) == pytest.approx((100, 100, 0))


def test_a_language_that_a_protocol_does_not_know_is_an_error_or_a_warning() -> None:
    with pytest.raises(UsageError, match=r'cannot tokenise language "qq".*sacrebleu'):
        score(["a"], ["a"], protocol="spacy-lowercase", language="qq")
    (warning,) = score(["a"], ["a"], protocol="moses-lowercase", language="qq").warnings
    assert '"qq"' in warning


@pytest.mark.parametrize(("protocol", "module"), [("spacy-lowercase", "spacy"), ("moses-lowercase", "sacremoses")])
def test_a_protocol_without_its_package_names_the_pip_command(protocol, module, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install .manyheads\[words\]"):
        score(["a"], ["a"], protocol=protocol)


@pytest.mark.parametrize("language", ["zh", "zho", "cmn_Hans", "zh-CN", "zh_TW", "zt", "yue"])
def test_chinese_is_tokenised_into_characters(language: str) -> None:
    result = score(["我们喜欢狗和猫。"], ["我们喜欢猫和狗。"], language=language)
    assert "|tok:zh|" in result.signature["bleu"]
    assert result.bleu == pytest.approx(
        sacrebleu.corpus_bleu(["我们喜欢狗和猫。"], [["我们喜欢猫和狗。"]], tokenize="zh").score
    )
    assert result.warnings == ()


@pytest.mark.parametrize(
    ("language", "best", "substitute"),
    [
        ("ja", "ja-mecab", "char"),
        ("jpn_Jpan", "ja-mecab", "char"),
        ("ko-KR", "ko-mecab", "13a"),
        ("kor", "ko-mecab", "13a"),
    ],
)
def test_a_language_whose_tokeniser_is_missing_gets_another_and_a_warning(
    language, best, substitute, monkeypatch
) -> None:
    monkeypatch.setattr(scores, "find_spec", lambda name: object())
    assert scores.choose_tokenizer(language) == (best, [])
    monkeypatch.setattr(scores, "find_spec", lambda name: None)
    result = score(["우리는 개를 좋아해요."], ["우리는 개를 좋아해요."], language=language)
    assert f"|tok:{substitute}|" in result.signature["bleu"]
    (warning,) = result.warnings
    assert f"tok:{best}" in warning
    assert "pip install" in warning
    assert paired_bootstrap(["a"], ["b"], ["a"], language=language, samples=1).warnings[0] == warning


def with_separate_punctuation(text: list[str]) -> list[str]:
    return [line.replace(",", " ,").removesuffix(".") + " ." for line in text]


def test_tokenised_outputs_and_tokenised_references_are_warned_of() -> None:
    (warning,) = score(with_separate_punctuation(OUTPUTS), REFERENCES).warnings
    assert warning.startswith("the outputs look tokenised: 131 of 131 lines")
    (warning,) = score(OUTPUTS, with_separate_punctuation(REFERENCES)).warnings
    assert warning.startswith("the references look tokenised")
    (warning,) = score(["A well @-@ known Dog"], ["A Dog"]).warnings
    assert "@-@" in warning
    (warning,) = score(["Ein Hu@@ nd .", "Eine Katze."], ["A Dog", "A Cat"]).warnings
    assert warning.startswith("the outputs hold subword pieces: 1 of 2 lines have their marks, such as 'Ein Hu@@")
    few = [*with_separate_punctuation(OUTPUTS[:13]), *OUTPUTS[13:]]
    assert score(few, REFERENCES).warnings == ()
    assert (
        paired_bootstrap(OUTPUTS, with_separate_punctuation(OUTPUTS), REFERENCES, samples=1)
        .warnings[0]
        .startswith("the baseline")
    )


def test_lower_case_text_is_warned_of_and_text_without_case_is_not() -> None:
    lower = [line.lower() for line in OUTPUTS]
    (warning,) = score(lower, REFERENCES).warnings
    assert warning.startswith("the outputs are all lower-case (131 lines)")
    (warning,) = score(OUTPUTS, [line.lower() for line in REFERENCES]).warnings
    assert warning.startswith("the references are all lower-case")
    assert score([*lower[1:], OUTPUTS[0]], REFERENCES).warnings == ()
    korean = ["우리는 개를 좋아해요.", "그는 학교에 갔다.", "tv를 봤다."]
    assert list(scores.doubts("outputs", korean)) == []
    assert list(scores.doubts("outputs", ["Comment ça va ? Bien !", "C'est 3 : 2."])) == []


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *((partial(measure, ["a"] * 7, ["a"] * 5), DataError, "7 outputs but 5 references")
          for measure in (score, exact_match)),
        *((partial(measure, [], []), DataError, "nothing to score") for measure in (score, exact_match)),
        *((partial(measure, "abc", ["a", "b", "c"]), UsageError, "lists of lines")
          for measure in (score, exact_match)),
        (partial(paired_bootstrap, ["a"] * 7, ["a"] * 5, ["a"] * 5), DataError, "7 outputs but 5 references"),
        (
            partial(paired_bootstrap, ["a"] * 5, ["a"] * 7, ["a"] * 5), DataError,
            "7 baseline outputs but 5 references",
        ),
        (partial(score, ["a"], ["a"], protocol="bleurt"), UsageError, r'"bleurt".*moses-lowercase'),
        (partial(paired_bootstrap, ["a"], ["a"], ["a"], metric="ter"), UsageError, '"ter"'),
        (partial(paired_bootstrap, ["a"], ["a"], ["a"], samples=0), UsageError, "samples = 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_scored_is_refused_with_the_reason(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("metric", [BLEU, CHRF])
@pytest.mark.parametrize(("share", "low", "high"), [(0.3, 0.2, 1.0), (0.5, 0.0, 0.01)], ids=["chance", "certain"])
def test_the_bootstrap_agrees_with_that_of_sacrebleu(metric, share, low, high, monkeypatch) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    baseline = with_errors(REFERENCES, share, seed=3)
    signatures, table = PairedTest(
        [("baseline", baseline), ("system", OUTPUTS)],
        {"metric": metric()},
        [REFERENCES],
        test_type="bs",
        n_samples=300,
    )()
    (name,) = signatures
    ours = paired_bootstrap(OUTPUTS, baseline, REFERENCES, metric=metric.__name__.lower(), samples=300)
    assert ours.score == approx(table[name][1].score, dtype=torch.float64)
    assert ours.baseline == approx(table[name][0].score, dtype=torch.float64)
    assert ours.p_value == pytest.approx(table[name][1].p_value)
    assert low < ours.p_value < high
    assert ours.signature == str(signatures[name])


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_interval_and_wins_agree_with_scoring_every_sample(metric) -> None:
    outputs, baseline, references = OUTPUTS[:13], with_errors(REFERENCES, 0.32, seed=3)[:13], REFERENCES[:13]
    result = paired_bootstrap(outputs, baseline, references, metric=metric, samples=80, seed=7)
    rows = np.random.default_rng(7).choice(13, size=(80, 13), replace=True)
    gains = []
    for row in rows:
        system, other, wanted = ([text[line] for line in row] for text in (outputs, baseline, references))
        both = [(BLEU() if metric == "bleu" else CHRF()).corpus_score(side, [wanted]) for side in (system, other)]
        gains.append(both[0].score - both[1].score)
    gains.sort()
    assert result.interval == pytest.approx((gains[2], gains[-3]))
    assert result.wins == sum(gain > 0 for gain in gains) / 80
    assert 0 < result.wins < 1
    assert result.difference == pytest.approx(result.score - result.baseline)


def test_the_bootstrap_does_not_depend_on_how_many_samples_fit_into_memory(monkeypatch) -> None:
    baseline = with_errors(REFERENCES, 0.32, seed=3)
    expected = paired_bootstrap(OUTPUTS, baseline, REFERENCES, samples=100)
    monkeypatch.setattr(significance, "_CELLS", 131 * 7)
    assert paired_bootstrap(OUTPUTS, baseline, REFERENCES, samples=100) == expected
    assert paired_bootstrap(OUTPUTS, baseline, REFERENCES, samples=100, seed=2) != expected


def test_exchanged_systems_have_the_opposite_difference() -> None:
    baseline = with_errors(REFERENCES, 0.4, seed=3)
    one = paired_bootstrap(OUTPUTS, baseline, REFERENCES, samples=200)
    other = paired_bootstrap(baseline, OUTPUTS, REFERENCES, samples=200)
    assert one.difference == -other.difference
    assert one.interval == (-other.interval[1], -other.interval[0])
    assert one.p_value == other.p_value


def test_a_system_is_not_better_than_itself() -> None:
    """SacreBLEU gives p = 1 / (samples + 1) for equal outputs, which reads as significant."""
    result = paired_bootstrap(OUTPUTS, OUTPUTS, REFERENCES, samples=200)
    assert (result.difference, result.interval, result.wins, result.p_value) == (0, (0, 0), 0, 1)


def test_the_interval_of_bleu_agrees_with_resampled_lines() -> None:
    """Resample 13 lines 80 times, and score each sample with sacreBLEU."""
    outputs, references = OUTPUTS[:13], REFERENCES[:13]
    rows = np.random.default_rng(7).choice(13, size=(80, 13), replace=True)
    resampled = sorted(
        BLEU().corpus_score([outputs[line] for line in row], [[references[line] for line in row]]).score
        for row in rows
    )
    found = significance.bleu_interval(outputs, references, samples=80, seed=7)
    assert found == pytest.approx((resampled[2], resampled[-3]))
    low, high = significance.bleu_interval(OUTPUTS, REFERENCES)
    assert low < PLAIN.bleu < high


def test_a_protocol_tokenises_the_lines_before_the_interval_is_computed() -> None:
    plain = significance.bleu_interval(OUTPUTS, REFERENCES, samples=40)
    tokenised = significance.bleu_interval(OUTPUTS, REFERENCES, protocol="moses-lowercase", samples=40)
    middle = score(OUTPUTS, REFERENCES, protocol="moses-lowercase").bleu
    assert tokenised != plain
    assert tokenised[0] < middle < tokenised[1]


@settings(max_examples=80)
@given(
    pairs=st.lists(
        st.tuples(st.text("ab ", max_size=12), st.text("abc ", max_size=12)),
        min_size=1,
        max_size=5,
    )
)
def test_the_score_of_a_bootstrap_is_the_corpus_score_for_short_and_empty_lines_too(pairs) -> None:
    """Compare both in lines where no 4-gram, no unigram or no word at all matches."""
    outputs, references = [output for output, _ in pairs], [reference for _, reference in pairs]
    expected = score(outputs, references)
    for metric in ("bleu", "chrf"):
        result = paired_bootstrap(outputs, references, references, metric=metric, samples=2)
        assert result.score == approx(getattr(expected, metric), dtype=torch.float64)


def test_exact_match_counts_equal_lines() -> None:
    assert exact_match(["a", "b c", "d", ""], ["a", "b  c", "D", ""]) == 0.5


def test_perplexity_is_the_exponential_of_the_mean_over_tokens() -> None:
    assert perplexity(30 * math.log(7), 30) == pytest.approx(7)
    assert perplexity(0.0, 3) == 1
    assert perplexity(1e6, 3) == math.inf
    assert math.isnan(perplexity(math.nan, 3))
    with pytest.raises(DataError, match="0 tokens"):
        perplexity(0.0, 0)


def test_importing_the_module_imports_no_metric_library_and_no_torch() -> None:
    program = (
        "import sys, manyheads.evaluation\n"
        "print([name for name in ('sacrebleu', 'spacy', 'sacremoses', 'torch') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
