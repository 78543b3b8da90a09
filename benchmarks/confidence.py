"""Measure how well the confidence in translations orders them: Spearman's correlation with their sentence chrF.

    python benchmarks/confidence.py RUN SOURCE REFERENCE [--lines 2000] [--json]

SOURCE and REFERENCE are files of lines that the run has not seen, in plain text or gzip; the search is that of the
run. "worst found" is the share of the fifth of the lines with the lowest chrF that is among the fifth with the
lowest confidence (0.2 by chance). "chrF by level" is the mean sentence chrF of each level, "confidence" the mean
confidence, and "pairs in order" the share of lines to which `score` gives a higher score with their reference than
with that of the next line.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness import Document, main, option
from manyheads.evaluation.scores import metrics
from manyheads.inference.translation.confidence import LEVELS
from manyheads.inference.translation.grouped import translate_in_groups
from manyheads.inference.translation.translator import Translator
from material import RUN, named, read_rows

Array = NDArray[np.float64]


def ranks(values: Array) -> Array:
    """Return the ranks of values; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def spearman(first: Array, second: Array) -> float:
    """Return Spearman's correlation; 0 where all values of one side are equal."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def worst_found(confidence: Array, chrf: Array) -> float:
    """Return the share of the fifth with the lowest chrF that is in the fifth with the lowest confidence."""
    count = len(chrf) // 5
    lowest, worst = (set(np.argsort(values, kind="stable")[:count].tolist()) for values in (confidence, chrf))
    return len(lowest & worst) / count


def measure(arguments: argparse.Namespace) -> Document:
    translator = Translator.load(arguments.run, device="cpu")
    rows = read_rows([arguments.source, arguments.reference], arguments.lines)
    sources, references = zip(*(row for row in rows if all(map(str.strip, row))), strict=True)
    results = translate_in_groups(translator, sources)
    metric = metrics("none")["chrf"]
    chrf = np.array(
        [
            metric.sentence_score(result.translation, [reference]).score / 100
            for result, reference in zip(results, references, strict=True)
        ]
    )
    confidence = np.array([result.confidence for result in results])
    levels = np.array([result.confidence_level for result in results])
    own, other = (
        np.array([result.score for result in translator.score(sources, texts)])
        for texts in (references, [*references[1:], references[0]])
    )
    figures = {
        "lines": len(results),
        "Spearman": spearman(confidence, chrf),
        "worst found": worst_found(confidence, chrf),
        "chrF": float(chrf.mean()),
        "confidence": float(confidence.mean()),
        "chrF by level": {name: float(chrf[levels == name].mean()) for name in LEVELS if (levels == name).any()},
        "pairs in order": float((own > other).mean()),
    }
    return {"rows": figures}


OPTIONS = {
    "run": RUN,
    "source": option(Path, "lines that the run has not seen", tiny=named("test.de"), required=True),
    "reference": option(Path, "their references", tiny=named("test.en"), required=True),
    "--lines": option(2_000, "lines to translate", tiny=20),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="shares and correlations, from 0 to 1", packages=["sacrebleu"])
