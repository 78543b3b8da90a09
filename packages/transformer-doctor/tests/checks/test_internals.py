"""Faults inside of a model that need no symptom in its outputs are named."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from specimens.planted import BOS, EOS, PAD, VOCABULARY, Transformer
from specimens.wrong_layers import WrongLayers
from transformer_doctor import examine

pytestmark = pytest.mark.usefixtures("one_length")


class CausalCross(Transformer):
    """Gives a look-ahead mask to cross-attention, too."""

    def __init__(self) -> None:
        super().__init__()
        self.cross_attention.register_forward_pre_hook(self.with_look_ahead)

    @staticmethod
    def with_look_ahead(_: object, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        queries, keys, values, mask = inputs
        return queries, keys, values, mask & torch.ones(queries.size(1), keys.size(1), dtype=torch.bool).tril()


def test_causal_cross_attention_is_named() -> None:
    report = examine(CausalCross(), vocab_size=VOCABULARY, pad=PAD, bos=BOS, eos=EOS, longest=32)
    assert report.names == ["causal-cross-attention"], report
    assert "the first queries see [1, 2, 3] of 11 source tokens" in report.findings[0].evidence


@pytest.mark.parametrize(
    ("way", "evidence"),
    [
        ("sound", ""),
        ("window", ""),
        ("tiled", ""),
        ("one head for all", "all heads have the same scores and the same weights"),
        (
            "values tiled",
            "the query heads read keys of the heads [0, 0, 2, 2], and values of the heads [0, 1, 0, 1]",
        ),
        ("own token hidden", "self-attention hides every token but the first from itself"),
        ("last real key hidden", "hides a real token of each row from all queries, at positions [7, 5, 4]"),
    ],
)
def test_heads_that_are_copies_and_hidden_tokens_are_named(way: str, evidence: str) -> None:
    report = examine(WrongLayers(way), vocab_size=VOCABULARY, pad=PAD, kind="decoder", longest=32)
    assert report.names == ["attention-differs"] * bool(evidence), report
    assert all(evidence in finding.evidence for finding in report.findings)
