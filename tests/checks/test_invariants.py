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


def no_source_mask(ids: Tensor, pad: int, unread: int | None) -> Tensor:
    return torch.ones_like(ids, dtype=torch.bool)[:, None, None]


def no_causal_mask(length: int, device: torch.device) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool, device=device)


@pytest.mark.parametrize(
    ("mask", "finding"), [(no_source_mask, "no-source-padding-mask"), (no_causal_mask, "sees-the-future")]
)
def test_a_mask_that_hides_nothing_is_named(mask: Any, finding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"manyheads.model.encoder_decoder.{mask.__name__.removeprefix('no_')}", mask)
    torch.manual_seed(0)
    assert finding in examine_own_model(EncoderDecoder(CONFIG, 23, 29, pad=PAD), TOKENIZERS).names
