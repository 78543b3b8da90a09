"""The result of comparing two models is explained in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from korean_evidence import in_english
from manyheads.cli.verbs import verdict_sentences
from manyheads.inference.parity import _MAX_DIFFERENCE, Parity

EXACT = Parity(16, 200, "the first of the run's test set", 1e-7, 1e-6, 16)


@pytest.mark.parametrize(
    ("parity", "words"),
    [
        (EXACT, "both give the same results: what is left is rounding"),
        (replace(EXACT, largest=_MAX_DIFFERENCE), "both give the same results"),
        (replace(EXACT, largest=2 * _MAX_DIFFERENCE), "the same outputs; the probabilities differ by the rounding"),
        (replace(EXACT, same_outputs=15), "1 of 16 greedy outputs differ: where two tokens are nearly as likely"),
        (replace(EXACT, compared=20, same_outputs=18, outputs="labels"), "2 of 20 labels differ"),
    ],
)
def test_differences_are_explained(parity: Parity, words: str) -> None:
    assert words in parity.verdict()
    assert not in_english(parity.verdict(), verdict_sentences())
    assert parity.to_json()["verdict"] == parity.verdict()
