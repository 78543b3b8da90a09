"""Faults inside of a model that need no symptom in its outputs are named."""

from __future__ import annotations

import torch
from torch import Tensor

from specimens.planted import BOS, EOS, PAD, VOCABULARY, Transformer
from transformer_doctor import examine


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
