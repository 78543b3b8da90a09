"""Test whether the difference of two systems is significant, by paired bootstrap resampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from manyheads.errors import DataError, UsageError
from manyheads.evaluation.classes import FloatArray, IntArray
from manyheads.evaluation.scores import check_lines, choose_tokenizer, doubts, metrics

__all__ = ["BootstrapResult", "paired_bootstrap", "paired_bootstrap_of_labels"]

# How many (sample, line) pairs are in memory at a time, 8 bytes each.
CELLS = 4_000_000


@dataclass(frozen=True)
class BootstrapResult:
    """Comparison of a system with a baseline by paired bootstrap resampling (Koehn 2004).

    Attributes:
        metric: "bleu", "chrf", "accuracy" or "macro_f1"; signature: sacreBLEU's, for the first two.
        score, baseline: scores on all lines, 0 to 100; difference: score - baseline.
        interval: 95 % confidence interval of the difference.
        wins: share of the samples in which the system scores higher.
        p_value: probability of such a difference by chance, as sacreBLEU computes it; below 0.05 is commonly called
            significant. It can be below 0.05 while the interval still contains 0: then the interval is the more
            careful answer.
        samples, seed: number of samples, and seed of the random generator.
        warnings: as in `Scores`.
    """

    metric: str
    signature: str
    score: float
    baseline: float
    difference: float
    interval: tuple[float, float]
    wins: float
    p_value: float
    samples: int
    seed: int
    warnings: tuple[str, ...] = ()


def paired_bootstrap(
    outputs: Sequence[str],
    baseline: Sequence[str],
    references: Sequence[str],
    *,
    metric: Literal["bleu", "chrf"] = "bleu",
    samples: int = 1000,
    seed: int = 12345,
    language: str = "en",
) -> BootstrapResult:
    """Compare two systems on many samples of the same lines, drawn with replacement.

    Samples and p-value are those of ``sacrebleu --paired-bs``, with one difference: two systems that differ in no
    sample have a p-value of 1 here, and 1 / (samples + 1) there.

    Args:
        outputs: lines of the system.
        baseline: lines of the baseline.
        references: one reference a line.
        metric: score to compare.
        samples: number of samples.
        seed: seed of the random generator.
        language: as for `score`.

    Raises:
        DataError: the numbers of lines differ, or there are none.
        UsageError: the metric is unknown, or samples is below 1.
    """
    check_lines(outputs, references)
    check_lines(baseline, references, name="baseline outputs")
    if metric not in ("bleu", "chrf"):
        raise UsageError(f'metric = "{metric}" is unknown: use bleu or chrf')
    tokenizer, warnings = choose_tokenizer(language)
    for name, lines in (("outputs", outputs), ("baseline outputs", baseline), ("references", references)):
        warnings += doubts(name, lines)
    measured = metrics(tokenizer)[metric]
    ours, theirs = (  # the counts of each line: (lines, counts); their sums over lines give the score
        np.array(measured._extract_corpus_statistics(lines, [references]), np.float64)
        for lines in (outputs, baseline)
    )

    def formula(sums: FloatArray) -> FloatArray:
        return np.array([measured._compute_score_from_stats(row).score for row in sums.astype(np.int64).tolist()])

    result = _compared(metric, ours, theirs, formula, samples, seed)
    signature = measured.get_signature()
    signature.update("bs", samples)
    signature.update("seed", seed)
    return replace(result, signature=str(signature), warnings=tuple(warnings))


def paired_bootstrap_of_labels(
    predicted: IntArray,
    baseline: IntArray,
    right: IntArray,
    classes: int,
    *,
    metric: Literal["accuracy", "macro_f1"] = "accuracy",
    samples: int = 1000,
    seed: int = 12345,
) -> BootstrapResult:
    """Compare two classifiers on the same texts, as `paired_bootstrap` does; scores are in percent.

    Args:
        predicted: classes predicted by the system (N,).
        baseline: classes predicted by the baseline (N,).
        right: true classes (N,).
        classes: number of classes.
        metric: score to compare.
        samples: number of samples.
        seed: seed of the random generator.

    Raises:
        DataError: the numbers of texts differ, or there are no texts.
        UsageError: samples is below 1.
    """
    if not len(predicted) == len(baseline) == len(right) > 0:
        raise DataError(
            f"{len(predicted):,} and {len(baseline):,} labels are given for {len(right):,} texts. Give one a text."
        )
    if metric == "accuracy":
        hits = [np.asarray(given == right, np.float64)[:, None] for given in (predicted, baseline)]
        return _compared(metric, hits[0], hits[1], lambda sums: 100 * sums[:, 0] / len(right), samples, seed)
    ours, theirs = (_class_counts(given, right, classes) for given in (predicted, baseline))
    return _compared(metric, ours, theirs, _macro_f1_of, samples, seed)


def _compared(
    metric: str,
    ours: FloatArray,
    theirs: FloatArray,
    formula: Callable[[FloatArray], FloatArray],
    samples: int,
    seed: int,
) -> BootstrapResult:
    """Compare two systems given by counts of each line, (lines, counts); the formula turns sums into scores."""
    if samples < 1:
        raise UsageError(f"samples = {samples} is too few: use at least 1, better 1000")
    total, other = (float(formula(counts.sum(0)[None])[0]) for counts in (ours, theirs))
    gains = np.concatenate(
        [formula(times @ ours) - formula(times @ theirs) for times in _draws(len(ours), samples, seed)]
    )
    ordered, edge = np.sort(gains), samples // 40
    by_chance = np.abs(gains) - np.abs(gains).mean() > abs(total - other)
    return BootstrapResult(
        metric=metric,
        signature=f"metric:{metric}|bs:{samples}|seed:{seed}",
        score=total,
        baseline=other,
        difference=total - other,
        interval=(float(ordered[edge]), float(ordered[samples - 1 - edge])),
        wins=float((gains > 0).mean()),
        p_value=float((by_chance.sum() + 1) / (samples + 1)) if gains.any() else 1.0,
        samples=samples,
        seed=seed,
    )


def _class_counts(given: IntArray, right: IntArray, classes: int) -> FloatArray:
    """Return for each text the class hit, the class predicted and the true class, one-hot: (N, 3 x C)."""
    eye = np.eye(classes)
    return np.concatenate([eye[right] * (given == right)[:, None], eye[given], eye[right]], axis=1)


def _macro_f1_of(sums: FloatArray) -> FloatArray:
    """Return the macro F1: (S, [C hits, C predicted, C true]) -> (S,)."""
    hits, given, right = np.moveaxis(sums.reshape(len(sums), 3, -1), 1, 0)
    seen = given + right > 0
    f1 = 2 * hits / np.where(seen, given + right, 1)
    return np.asarray(100 * f1.sum(1) / seen.sum(1))


def _draws(lines: int, samples: int, seed: int) -> Iterator[FloatArray]:
    """Yield how often each sample contains each line: (some samples, lines) at a time, to bound the memory."""
    random = np.random.default_rng(seed)
    part = max(1, CELLS // lines)
    for start in range(0, samples, part):
        count = min(part, samples - start)
        drawn = random.choice(lines, size=(count, lines), replace=True) + np.arange(count)[:, None] * lines
        yield np.bincount(drawn.ravel(), minlength=count * lines).reshape(count, lines).astype(np.float64)
