"""Examine functions that compute perplexity (invariant L) and BLEU (invariant P)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.calls import report_errors
from transformer_doctor.errors import UsageError, require
from transformer_doctor.report import Finding, Report, make_report
from transformer_doctor.tolerances import SAME_BLEU, SAME_LOSS

_LONG = 600  # words of a long output
_HYPOTHESES = (
    "the small dog runs across the wet street in the rain",
    "two men are sitting on a bench and talk about the news",
    "a woman reads",
    "children play football in the park near the old town hall",
    "a cat sleeps on the warm window sill all day long",
)
_REFERENCES = (
    "the small dog is running across the wet street in the rain",
    "two men are sitting on a bench and talking about the news",
    "a woman is reading a book about the history of the city",
    "children are playing football in the park near the town hall",
    "a cat sleeps on the warm window sill all day long",
)


@report_errors
def examine_evaluation(evaluate: Callable[[list[Any]], float], batches: Sequence[Any], merged: Any) -> Report:
    """Examine a function that evaluates a model on batches: its perplexity or mean loss.

    Args:
        evaluate: a list of batches, each as the model gets it in training, to one figure.
        batches: at least three batches that differ in their number of target tokens.
        merged: the pairs of all of them as one batch.

    Raises:
        UsageError: there are fewer than three batches.
    """
    if len(batches) < 3:
        raise UsageError(f"{len(batches)} batches are too few: give at least three, of different lengths.")
    merged_value, batched_value = float(evaluate([merged])), float(evaluate(list(batches)))
    findings = []
    if not math.isclose(merged_value, batched_value, rel_tol=SAME_LOSS):
        single = [float(evaluate([batch])) for batch in batches]
        logs = [math.log(value) for value in single] if min(single) > 0 else single
        means = [math.exp(sum(logs) / len(logs)), sum(single) / len(single)]
        evidence = (
            f"the same pairs give {merged_value:.6g} as one batch and {batched_value:.6g} as {len(batches)} batches"
        )
        name = "mean-of-batch-means"
        if math.isclose(batched_value, single[-1], rel_tol=SAME_LOSS):
            name, evidence = "last-batch-loss", f"{evidence}; the last one alone gives {single[-1]:.6g}"
        elif any(math.isclose(batched_value, mean, rel_tol=SAME_LOSS) for mean in means):
            evidence += ", the mean of the batches' means"
        findings.append(model_finding(name, evidence))
    return make_report(findings, ["the figure does not depend on the batching"])


@report_errors
def examine_bleu(bleu: Callable[[list[str], list[str]], float]) -> Report:
    """Examine a function that is called BLEU: hypotheses and references, a text each, to a figure.

    0 to 1 and 0 to 100 are both accepted, and so is any of sacreBLEU's tokenizers.
    """
    findings = list(_bleu_findings(bleu))
    return make_report(findings, ["BLEU is that of sacreBLEU", "no sentence is left out of the score"])


def _bleu_findings(bleu: Callable[[list[str], list[str]], float]) -> Iterator[Finding]:
    corpus_bleu = require("sacrebleu", "the examination of a BLEU").corpus_bleu

    hypotheses, references = list(_HYPOTHESES), list(_REFERENCES)
    expected = corpus_bleu(hypotheses, [references]).score
    result = float(bleu(hypotheses, references))
    result *= 100 if result <= 1 < expected else 1  # a score of at most 1 is taken for one of 0 to 1
    if abs(result - expected) > SAME_BLEU:
        yield model_finding("not-bleu", f"{result:.2f} where sacreBLEU gives {expected:.2f}")
    long = " ".join(f"word{number}" for number in range(_LONG))
    cut = f"{long[: -len(long) // 10]} the rest is another one"
    questions = {
        "capital letters in the outputs": (hypotheses, [text.upper() for text in hypotheses], references),
        "commas between the words of the outputs": (
            hypotheses, [text.replace(" ", " , ") for text in hypotheses], references,
        ),
        f"another end of an output of {_LONG} words": ([long], [cut], [long]),
    }  # fmt: skip
    for words, (plain, changed, wanted) in questions.items():
        with suppress(Exception):  # any exception of a function that wants other texts
            if math.isclose(float(bleu(changed, wanted)), float(bleu(plain, wanted)), rel_tol=1e-9):
                evidence = f"{words} would not change the score: outputs are changed before it"
                yield model_finding("not-bleu", evidence, "warning")
    try:
        with_empty = float(bleu([*hypotheses, ""], [*references, _REFERENCES[0]]))
    except Exception:  # any exception: failing loudly is no fault of a score
        return
    if math.isclose(with_empty, float(bleu(hypotheses, references)), rel_tol=1e-9):
        yield model_finding("errors-swallowed", f"an empty output more does not change the score: {with_empty:.4g}")
