"""The outputs and weights of a model before its first update."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from tests.model.samples import PAD, make_config, random_ids
from torch.nn import functional

from manyheads.config.schema import ModelConfig
from manyheads.config.schema.base import SettingsError
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.encoder_decoder import EncoderDecoder

WIDTH, VOCABULARY = 64, 7_919


def allowed(norm: str, positions: str, tied: str, scaled: bool) -> ModelConfig | None:
    """Return a configuration of these settings, or None if they exclude each other."""
    try:
        return make_config(
            d_model=WIDTH,
            d_ff=2 * WIDTH,
            num_heads=4,
            norm=norm,
            positions=positions,
            tied_embeddings=tied,
            scale_embeddings=scaled,
        )
    except SettingsError:
        return None


COMBINATIONS = itertools.product(
    ["pre", "post"], ["sinusoidal", "learned", "rotary"], ["all", "decoder", "none"], [True, False]
)
CONFIGS = [config for choice in COMBINATIONS if (config := allowed(*choice)) is not None]


def name(config: ModelConfig) -> str:
    scaled = "scaled" if config.scale_embeddings else "unscaled"
    return f"{config.norm}-{config.positions}-{config.tied_embeddings}-{scaled}"


@pytest.fixture(scope="module", params=CONFIGS, ids=name)
def fresh(request: pytest.FixtureRequest) -> EncoderDecoder:
    torch.manual_seed(3)
    return EncoderDecoder(request.param, VOCABULARY, VOCABULARY, pad=PAD).eval()


def root_mean_square(x: torch.Tensor) -> float:
    """Return the root mean square of a tensor."""
    return float(x.square().mean().sqrt())


@torch.no_grad()
def test_tokens_and_positions_have_about_the_same_magnitude(fresh) -> None:
    """Expect magnitudes within a factor of two."""
    ids, positions = random_ids(7, 31, VOCABULARY), torch.arange(31)[None]
    for embedding in (fresh.source_embedding, fresh.target_embedding):
        tokens = embedding.tokens(ids) * embedding.scale
        if embedding.positions is not None:
            signal = embedding.positions(positions, 31)
            assert 0.5 < root_mean_square(tokens) / root_mean_square(signal) < 2
            torch.testing.assert_close(embedding(ids, positions, 31), tokens + signal)
        else:
            torch.testing.assert_close(embedding(ids, positions, 31), tokens)


@torch.no_grad()
def test_the_row_of_padding_is_zero_and_no_other_row_is(fresh) -> None:
    for embedding in (fresh.source_embedding, fresh.target_embedding):
        nonzero = embedding.tokens.weight.abs().amax(-1) > 0
        assert not bool(nonzero[PAD])
        assert int(nonzero.sum()) == VOCABULARY - 1


@torch.no_grad()
def test_the_initial_loss_is_near_that_of_a_uniform_guess(fresh) -> None:
    """Expect logits of standard deviation 1, and so a loss of about ln V + 1/2."""
    target = random_ids(11, 18, VOCABULARY, seed=4)
    logits = fresh(random_ids(11, 17, VOCABULARY), target[:, :-1])
    assert 0.8 < root_mean_square(logits) < 1.25
    loss = float(functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten()))
    assert 1 < loss / math.log(VOCABULARY) < 1.1


def test_the_row_of_padding_gets_no_gradient() -> None:
    torch.manual_seed(3)
    embedding = TokenEmbedding(make_config(), 47, PAD)
    embedding(torch.tensor([[5, PAD, 7]]), torch.arange(3)[None], 3).square().sum().backward()
    gradient = embedding.tokens.weight.grad
    assert gradient is not None
    assert gradient.abs().sum(-1).nonzero().flatten().tolist() == [5, 7]


@pytest.mark.parametrize(("setting", "expected"), [(None, 0.3), (0.0, 0.0), (0.2, 0.2)])
def test_the_embedding_has_the_dropout_of_the_rest_unless_it_has_its_own(setting, expected) -> None:
    embedding = TokenEmbedding(make_config(dropout=0.3, embedding_dropout=setting), 47, PAD)
    assert embedding.dropout.probability == expected
    embedded = embedding(torch.full((101, 1), 5), torch.zeros(1, 1, dtype=torch.int64), 1)
    zeros = float((embedded == 0).double().mean())
    assert abs(zeros - expected) < 0.05


def test_the_seed_determines_the_weights() -> None:
    def weights(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        model = EncoderDecoder(make_config(), 47, 47)
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))
