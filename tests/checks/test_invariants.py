"""New models of this package raise no alarm, and a mask that hides nothing is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from manyheads.checks.invariants import examine_own_model
from manyheads.config.schema import ModelConfig
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import TextClassifier
from manyheads.text.tokenizer import PAD

SIZES: dict[str, Any] = {
    "d_model": 16,
    "num_heads": 2,
    "d_ff": 29,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}
CONFIG = ModelConfig(**SIZES)
TOKENIZERS: Any = SimpleNamespace(source=SimpleNamespace(size=23), target=SimpleNamespace(size=29))


def test_new_models_raise_no_alarm() -> None:
    torch.manual_seed(0)
    for model in (
        EncoderDecoder(CONFIG, 23, 29, pad=PAD),
        DecoderOnly(CONFIG, 23),
        TextClassifier(CONFIG, 23, 3, pad=PAD),
    ):
        report = examine_own_model(model, TOKENIZERS)
        assert report.ok, report
        assert len(report.asked) >= 7


def test_a_padding_mask_that_hides_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def visible(ids: Tensor, pad: int) -> Tensor:
        return torch.ones_like(ids, dtype=torch.bool)[:, None, None]

    monkeypatch.setattr("manyheads.model.encoder_decoder.padding_mask", visible)
    torch.manual_seed(0)
    assert "no-source-padding-mask" in examine_own_model(EncoderDecoder(CONFIG, 23, 29, pad=PAD), TOKENIZERS).names
