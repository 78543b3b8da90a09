"""A model of each kind, and the two ways attention is computed."""

from __future__ import annotations

import pytest
import torch
from tests.model.samples import VARIANTS, scrambled_model

from manyheads.model import attention
from manyheads.model.encoder_decoder import EncoderDecoder


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    """A scrambled model in float64, not training."""
    return scrambled_model(**request.param)


@pytest.fixture(params=["formula", "fused"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How attention is computed where gradients are wanted: as a formula, or by torch's fused kernel."""
    monkeypatch.setattr(attention, "FEW_KEYS", 10**6 if request.param == "formula" else 0)
    return str(request.param)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test draws the same numbers, whichever tests ran before it."""
    torch.manual_seed(1)
