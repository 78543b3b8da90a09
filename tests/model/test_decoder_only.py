"""Decoder-only models, compared with GPT-2 of transformers, and their causal direction."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.tolerances import assert_close
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from manyheads.config.schema import ModelConfig
from manyheads.model.decoder_only import DecoderOnly

B, T, V, PAD = 5, 11, 37, 1
SIZES = {"d_model": 28, "d_ff": 44, "num_heads": 7, "num_decoder_layers": 2}
LIKE_GPT2 = ModelConfig(
    **SIZES, dropout=0.0, positions="learned", max_positions=T + 2, activation="gelu-tanh", scale_embeddings=False
)


@pytest.fixture
def ids() -> Tensor:
    torch.manual_seed(1)
    return torch.randint(2, V, (B, T))


def copy_weights(model: DecoderOnly, theirs: dict[str, Tensor]) -> None:
    """Copy the weights of GPT-2, whose linear layers store transposed matrices."""
    model.embedding.tokens.weight.copy_(theirs["wte.weight"])
    model.embedding.positions.table.weight.copy_(theirs["wpe.weight"])  # type: ignore[union-attr]
    for number, layer in enumerate(model.decoder_layers):
        copy_linear(layer.self_attention.project_in, theirs, f"h.{number}.attn.c_attn")
        copy_linear(layer.self_attention.project_out, theirs, f"h.{number}.attn.c_proj")
        copy_linear(layer.feed_forward.expand, theirs, f"h.{number}.mlp.c_fc")
        copy_linear(layer.feed_forward.contract, theirs, f"h.{number}.mlp.c_proj")
        copy_norm(layer.around_attention.norm, theirs, f"h.{number}.ln_1")
        copy_norm(layer.around_feed_forward.norm, theirs, f"h.{number}.ln_2")
    copy_norm(model.decoder_norm, theirs, "ln_f")


def copy_linear(module: Any, theirs: dict[str, Tensor], name: str) -> None:
    module.weight.copy_(theirs[f"{name}.weight"].T)
    module.bias.copy_(theirs[f"{name}.bias"])


def copy_norm(module: Any, theirs: dict[str, Tensor], name: str) -> None:
    module.weight.copy_(theirs[f"{name}.weight"])
    module.bias.copy_(theirs[f"{name}.bias"])


@torch.no_grad()
def test_a_model_with_the_weights_of_gpt2_gives_its_logits(ids: Tensor) -> None:
    config = GPT2Config(vocab_size=V, n_positions=T + 2, n_embd=28, n_layer=2, n_head=7, n_inner=44)
    theirs = GPT2LMHeadModel(config).eval()
    ours = DecoderOnly(LIKE_GPT2, V, pad=PAD).eval()
    state = theirs.transformer.state_dict()
    for name, tensor in state.items():  # biases other than 0, norms other than 1
        state[name] = tensor + 0.1 * torch.randn_like(tensor)
    theirs.transformer.load_state_dict(state)
    copy_weights(ours, state)
    assert_close(ours(ids), theirs(ids).logits)
    assert ours.output.weight is ours.embedding.tokens.weight


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
