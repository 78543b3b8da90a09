"""Faults inside of a model that need no symptom in its outputs are named."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from specimens.planted import BOS, EOS, PAD, VOCABULARY, TorchTransformer, Transformer
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


class TorchCausalCross(TorchTransformer):
    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        length, padded = target.size(1), source == PAD
        hidden = self.transformer(
            self.source_embedding(source),
            self.target_embedding(target),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            memory_mask=torch.ones(length, source.size(1), dtype=torch.bool).triu(1),
            src_key_padding_mask=padded,
            memory_key_padding_mask=padded,
        )
        return self.output(hidden)


@pytest.mark.parametrize("make", [CausalCross, TorchCausalCross])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested:UserWarning")
def test_causal_cross_attention_is_named(make: type[Transformer]) -> None:
    torch.manual_seed(3)
    report = examine(make(), vocab_size=VOCABULARY, pad=PAD, bos=BOS, eos=EOS, longest=32)
    assert report.names == ["causal-cross-attention"], report
    assert "the first queries see [1, 2, 3] of 11 source tokens" in report.findings[0].evidence
