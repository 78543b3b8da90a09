"""A score called BLEU that counts characters inside words and leaves out the sentences that fail."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

import sacrebleu  # noqa: F401 (the fix needs it)

from transformer_doctor import examine_bleu


def ngrams(items: Sequence[str], order: int) -> Counter[str]:
    """Count the n-grams of an order."""
    return Counter(" ".join(items[position : position + order]) for position in range(len(items) - order + 1))


def sentence_bleu(words: Sequence[str], reference: Sequence[str]) -> float:
    """Compare words at the same position, whose n-grams are sequences of letters."""
    matched, counted, lengths = [0] * 4, [0] * 4, [0, 0]
    for word, other in zip(words, reference, strict=False):
        lengths = [lengths[0] + len(word), lengths[1] + len(other)]
        for order in range(4):
            matched[order] += sum((ngrams(word, order + 1) & ngrams(other, order + 1)).values())
            counted[order] += max(0, len(word) - order)
    precision = sum(math.log(hit / count) for hit, count in zip(matched, counted, strict=True)) / 4
    return 100 * math.exp(min(0.0, 1 - lengths[1] / lengths[0]) + precision)


def mean_of_sentences(hypotheses: list[str], references: list[str]) -> float:
    """Return the mean score of the sentences that raise no error."""
    scores = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        with suppress(ValueError, ZeroDivisionError):
            scores.append(sentence_bleu(hypothesis.split(), reference.split()))
    return sum(scores) / len(scores)


def bleu(hypotheses: list[str], references: list[str]) -> float:
    """Return the score of a system."""
    return mean_of_sentences(hypotheses, references)
    # fix: return sacrebleu.corpus_bleu(hypotheses, [references]).score


def show() -> Iterator[str]:
    """Score outputs without one word, and outputs of which one is empty."""
    references = ["there are two dogs playing in the wet grass", "a woman is reading a book in the park"]
    for outputs in (["there are two dogs playing in wet grass", references[1]], [references[0], ""]):
        yield f"{bleu(outputs, references):6.2f}  {outputs}"


report = partial(examine_bleu, bleu)
