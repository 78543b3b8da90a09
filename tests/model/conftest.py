"""A model of each variant, and the two implementations of attention."""

from __future__ import annotations

import pytest
import torch
from tests.model.samples import VARIANTS, scrambled_model

from manyheads.model import attention
from manyheads.model.encoder_decoder import EncoderDecoder


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    """Return a scrambled model in float64 in evaluation mode."""
    return scrambled_model(**request.param)


@pytest.fixture(params=["formula", "fused"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Select the implementation of attention with gradients: the formula, or torch's fused kernel."""
    monkeypatch.setattr(attention, "_FEW_KEYS", 10**6 if request.param == "formula" else 0)
    return str(request.param)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Seed torch, so that random numbers do not depend on the tests before."""
    torch.manual_seed(1)
