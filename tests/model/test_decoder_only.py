"""Decoder-only models: their causal direction (compared with GPT-2 in tests/interop/test_huggingface.py)."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.model.decoder_only import DecoderOnly

B, T, V, PAD = 5, 11, 37, 1
SIZES = {"d_model": 28, "d_ff": 44, "num_heads": 7, "num_decoder_layers": 2}


@pytest.fixture
def ids() -> Tensor:
    torch.manual_seed(1)
    return torch.randint(2, V, (B, T))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@torch.no_grad()
def test_a_token_changes_the_outputs_from_its_position_on_and_none_before(ids: Tensor, positions: str) -> None:
    model = DecoderOnly(ModelConfig(**SIZES, positions=positions), V, pad=PAD).eval()  # type: ignore[arg-type]
    before = model(ids)
    for position in (0, 5, T - 1):
        changed = ids.clone()
        changed[:, position] = (ids[:, position] - 1) % (V - 2) + 2
        after = model(changed)
        torch.testing.assert_close(after[:, :position], before[:, :position])
        assert ((after - before).abs().amax(-1)[:, position:] > 1e-5).all()


@torch.no_grad()
def test_padding_at_the_end_changes_nothing(ids: Tensor) -> None:
    model = DecoderOnly(ModelConfig(**SIZES, positions="rotary"), V, pad=PAD).eval()
    padded = torch.cat([ids, torch.full((B, 3), PAD)], dim=1)
    torch.testing.assert_close(model(padded)[:, :T], model(ids))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_no_gradient_flows_to_a_later_token(ids: Tensor, positions: str) -> None:
    """Check invariant B for gradients."""
    model = DecoderOnly(ModelConfig(**SIZES, positions=positions), V, pad=PAD).eval()  # type: ignore[arg-type]
    seen: list[Tensor] = []
    model.embedding.register_forward_hook(lambda module, inputs, output: seen.append(output))
    logits = model(ids)
    for position in (0, 5, T - 1):
        (gradient,) = torch.autograd.grad(logits[:, position].square().sum(), seen[0], retain_graph=True)
        assert not gradient[:, position + 1 :].any()
        assert (gradient[:, : position + 1].abs().amax(-1) > 0).all()
