"""Test whether the difference of two systems is significant, by paired bootstrap resampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from manyheads.errors import DataError, UsageError
from manyheads.evaluation.classes import FloatArray, IntArray
from manyheads.evaluation.scores import Protocol, check_lines, choose_tokenizer, doubts, metrics, prepare

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

# Number of (sample, line) pairs in memory at a time, 8 bytes each.
_CELLS = 4_000_000
_ALPHA = 0.05  # p-value below which a difference is commonly called significant
_Z_95, _Z_80 = 1.96, 0.84  # quantiles of the normal distribution: 97.5 % (two-sided 95 %), and 80 % (power)


@dataclass(frozen=True)
class BootstrapResult:
    """Comparison of a system with a baseline by paired bootstrap resampling (Koehn 2004).

    Attributes:
        metric: "bleu", "chrf", "accuracy" or "macro_f1"; signature: sacreBLEU's signature, for the first two.
        score, baseline: scores on all lines, 0 to 100; difference: score - baseline.
        interval: 95 % confidence interval of the difference.
        wins: share of the samples in which the system scores higher.
        p_value: probability of such a difference by chance, as sacreBLEU computes it; below 0.05 is commonly called
            significant. It can be below 0.05 while the interval still contains 0: then the interval is the more
            careful answer.
        samples, seed: number of samples, and seed of the random generator.
        warnings: as in `Scores`.
        lines: number of lines compared.
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
    lines: int = 0

    @property
    def significant(self) -> bool:
        """Whether p is below 0.05 and the interval does not contain 0."""
        low, high = self.interval
        return self.p_value < _ALPHA and not low <= 0 <= high

    @property
    def lines_needed(self) -> float:
        """Number of lines on which four of five tests would find this difference; infinite if there is none.

        The standard error, a quarter of the interval, falls with the square root of the number of lines.
        """
        low, high = self.interval
        error = (high - low) / (2 * _Z_95)
        if not self.difference:
            return math.inf
        return self.lines * ((_Z_95 + _Z_80) * error / self.difference) ** 2


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
    counts, baseline_counts = (_line_counts(measured, lines, references) for lines in (outputs, baseline))
    result = _compare_counts(metric, counts, baseline_counts, partial(_corpus_scores, measured), samples, seed)
    signature = measured.get_signature()
    signature.update("bs", samples)
    signature.update("seed", seed)
    return replace(result, signature=str(signature), warnings=tuple(warnings))


def bleu_interval(
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    protocol: Protocol = "sacrebleu",
    language: str = "en",
    samples: int = 1000,
    seed: int = 12345,
) -> tuple[float, float]:
    """Return the 95 % confidence interval of BLEU by bootstrap resampling; arguments are those of `score`."""
    named, outputs, references, _, _ = prepare(outputs, references, protocol, language)
    counts = _line_counts(named["bleu"], outputs, references)
    parts = [_corpus_scores(named["bleu"], times @ counts) for times in _draws(len(counts), samples, seed)]
    return _interval(np.concatenate(parts))


def _line_counts(measured: Metric, lines: Sequence[str], references: Sequence[str]) -> FloatArray:
    """Return the counts of each line (lines, counts), whose sums over lines give the score."""
    return np.array(measured._extract_corpus_statistics(lines, [references]), np.float64)


def _corpus_scores(measured: Metric, sums: FloatArray) -> FloatArray:
    """Return the score of each row of summed counts: (S, counts) -> (S,)."""
    return np.array([measured._compute_score_from_stats(row).score for row in sums.astype(np.int64).tolist()])


def _interval(values: FloatArray) -> tuple[float, float]:
    """Return the interval that leaves out 2.5 % of the values at each end."""
    ordered, edge = np.sort(values), len(values) // 40
    return float(ordered[edge]), float(ordered[len(values) - 1 - edge])


def paired_bootstrap_of_labels(
    predicted: IntArray,
    baseline: IntArray,
    targets: IntArray,
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
        targets: true classes (N,).
        classes: number of classes.
        metric: score to compare.
        samples: number of samples.
        seed: seed of the random generator.

    Raises:
        DataError: the numbers of texts differ, or there are no texts.
        UsageError: samples is below 1.
    """
    if not len(predicted) == len(baseline) == len(targets) > 0:
        raise DataError(
            f"{len(predicted):,} and {len(baseline):,} labels are given for {len(targets):,} texts. "
            "Give one a text."
        )
    if metric == "accuracy":
        hits = [np.asarray(labels == targets, np.float64)[:, None] for labels in (predicted, baseline)]
        return _compare_counts(
            metric, hits[0], hits[1], lambda sums: 100 * sums[:, 0] / len(targets), samples, seed
        )
    counts, baseline_counts = (_class_counts(labels, targets, classes) for labels in (predicted, baseline))
    return _compare_counts(metric, counts, baseline_counts, _macro_f1_of, samples, seed)


def _compare_counts(
    metric: str,
    counts: FloatArray,
    baseline_counts: FloatArray,
    formula: Callable[[FloatArray], FloatArray],
    samples: int,
    seed: int,
) -> BootstrapResult:
    """Compare two systems given by counts of each line, (lines, counts); the formula turns sums into scores."""
    if samples < 1:
        raise UsageError(f"samples = {samples} is too few: use at least 1, better 1000")
    score, baseline = (float(formula(part.sum(0)[None])[0]) for part in (counts, baseline_counts))
    gains = np.concatenate(
        [formula(times @ counts) - formula(times @ baseline_counts) for times in _draws(len(counts), samples, seed)]
    )
    by_chance = np.abs(gains) - np.abs(gains).mean() > abs(score - baseline)
    return BootstrapResult(
        metric=metric,
        signature=f"metric:{metric}|bs:{samples}|seed:{seed}",
        score=score,
        baseline=baseline,
        difference=score - baseline,
        interval=_interval(gains),
        wins=float((gains > 0).mean()),
        p_value=float((by_chance.sum() + 1) / (samples + 1)) if gains.any() else 1.0,
        samples=samples,
        seed=seed,
        lines=len(counts),
    )


def _class_counts(predicted: IntArray, targets: IntArray, classes: int) -> FloatArray:
    """Return for each text the class hit, the class predicted and the true class, one-hot: (N, 3 x C)."""
    eye = np.eye(classes)
    return np.concatenate([eye[targets] * (predicted == targets)[:, None], eye[predicted], eye[targets]], axis=1)


def _macro_f1_of(sums: FloatArray) -> FloatArray:
    """Return the macro F1: (S, [C hits, C predicted, C true]) -> (S,)."""
    hits, predicted, true = np.moveaxis(sums.reshape(len(sums), 3, -1), 1, 0)
    seen = predicted + true > 0
    f1 = 2 * hits / np.where(seen, predicted + true, 1)
    return np.asarray(100 * f1.sum(1) / seen.sum(1))


def _draws(lines: int, samples: int, seed: int) -> Iterator[FloatArray]:
    """Yield the count of each line in each sample: (some samples, lines) at a time, to bound the memory."""
    random = np.random.default_rng(seed)
    part = max(1, _CELLS // lines)
    for start in range(0, samples, part):
        count = min(part, samples - start)
        drawn = random.choice(lines, size=(count, lines), replace=True) + np.arange(count)[:, None] * lines
        yield np.bincount(drawn.ravel(), minlength=count * lines).reshape(count, lines).astype(np.float64)
