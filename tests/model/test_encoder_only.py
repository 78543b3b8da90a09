"""Encoder-only models: padding and pooling (compared with BERT in tests/interop/test_huggingface.py)."""

from __future__ import annotations

import pytest
import torch
from tests.tolerances import assert_close
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.model.encoder_only import EncoderOnly, TextClassifier

B, S, V, CLASSES, PAD = 5, 11, 37, 3, 1
SIZES = {"d_model": 28, "d_ff": 44, "num_heads": 7, "num_encoder_layers": 2}


@pytest.fixture
def ids() -> Tensor:
    torch.manual_seed(1)
    found = torch.randint(2, V, (B, S))
    for row, length in enumerate((11, 7, 3, 5, 1)):
        found[row, length:] = PAD
    return found


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@torch.no_grad()
def test_a_class_does_not_depend_on_padding_or_other_rows(ids: Tensor, pooling: str, positions: str) -> None:
    model = TextClassifier(ModelConfig(**SIZES, pooling=pooling, positions=positions), V, CLASSES, pad=PAD).eval()  # type: ignore[arg-type]
    together = model(ids)
    for row, logits in zip(ids, together, strict=True):
        alone = row[row != PAD][None]
        assert_close(model(alone)[0], logits)


@torch.no_grad()
def test_every_token_attends_to_the_last_token(ids: Tensor) -> None:
    model = EncoderOnly(ModelConfig(**SIZES), V, pad=PAD).eval()
    changed = ids.clone()
    changed[0, -1] = (ids[0, -1] - 1) % (V - 2) + 2
    before, after = model.encode(ids)[0], model.encode(changed)[0]
    assert ((before[0] - after[0]).abs().amax(-1) > 1e-4).all()
    torch.testing.assert_close(before[1:], after[1:])


@torch.no_grad()
def test_pooling_by_mean_leaves_out_padding_and_pooling_by_cls_takes_the_first_token(ids: Tensor) -> None:
    hidden = torch.randn(B, S, 28)
    mask = (ids != PAD)[:, None, None]
    for pooling in ("cls", "mean"):
        model = TextClassifier(ModelConfig(**SIZES, pooling=pooling), V, CLASSES, pad=PAD)  # type: ignore[arg-type]
        for row in range(B):
            real = hidden[row, ids[row] != PAD]
            expected = real[0] if pooling == "cls" else real.mean(0)
            torch.testing.assert_close(model.pool(hidden, mask)[row], expected)
