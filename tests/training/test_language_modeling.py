"""The loss of a language model, in training and over a sliding window (invariants L and A, small models)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.decoding.test_language_model import V, language_model, read_whole
from tests.tolerances import approx
from torch.nn import functional

from manyheads.decoding.language_model import window_step
from manyheads.tensors.blocks import BlockSampler, blank_blocks, make_blocks
from manyheads.training.objective import Windows, next_token_loss, window_nll

TOKENS = np.random.default_rng(5).integers(4, V, 61).astype(np.int32)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_objective_is_the_cross_entropy_of_all_positions(smoothing: float) -> None:
    model = language_model()
    batch = make_blocks(TOKENS, np.array([2, 17, 40]), 9)
    loss, nll = next_token_loss(model, batch, smoothing)
    logits, labels = model(batch.ids).flatten(0, 1), batch.labels.flatten()
    wanted = functional.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    plain = functional.cross_entropy(logits, labels, reduction="sum")
    torch.testing.assert_close(loss, wanted.float())
    torch.testing.assert_close(nll, plain.float())


def test_a_blank_batch_has_a_loss_and_gradients_of_zero() -> None:
    model = language_model()
    loss, nll = next_token_loss(model, blank_blocks(1), 0.1)
    loss.backward()
    assert (float(loss.detach()), float(nll)) == (0.0, 0.0)
    assert all(parameter.grad is not None and not parameter.grad.any() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("length", "width", "step"), [(61, 8, 3), (61, 8, 8), (9, 8, 1), (8, 8, 4), (2, 8, 4), (61, 60, 7)]
)
def test_every_token_but_the_first_is_predicted_once_and_with_context(length: int, width: int, step: int) -> None:
    windows = Windows(length, width=width, step=step)
    seen: list[int] = []
    for number in windows:
        batch, positions = windows.batch(np.arange(length, dtype=np.int32), [number])
        seen += batch.labels.flatten()[positions].tolist()
        for position in positions.tolist():
            assert batch.labels.flatten()[position] == batch.ids.flatten()[position] + 1
            assert position >= min(int(batch.ids.flatten()[position]), width - step)
    assert seen == list(range(1, length))


@pytest.mark.parametrize("width", [5, 8])
def test_the_loss_of_a_window_is_that_of_generation(width: int) -> None:
    """The log-probabilities of a text are those with which a generator would produce it."""
    model = language_model(positions="learned", max_positions=width)
    windows = Windows(len(TOKENS), width=width, step=window_step(width))
    nats, count = window_nll(model, TOKENS, windows)
    with torch.no_grad():
        ids = TOKENS.tolist()
        generated = [
            float(read_whole(model, ids[:position], width)[ids[position]]) for position in range(1, len(ids))
        ]
    assert count == len(generated) == 60
    assert nats == approx(-sum(generated))


@pytest.mark.parametrize("batch_tokens", [1, 16, 50, 4_096])
def test_perplexity_does_not_depend_on_batching(batch_tokens: int) -> None:
    model, windows = language_model(), Windows(len(TOKENS), width=8, step=3)
    alone = [window_nll(model, TOKENS, windows, [number]) for number in windows]
    nats, count = window_nll(model, TOKENS, windows, batch_tokens=batch_tokens)
    assert count == sum(tokens for _, tokens in alone)
    assert nats == approx(sum(part for part, _ in alone))


def test_a_text_of_one_token_has_no_loss() -> None:
    windows = Windows(1, width=8, step=4)
    assert window_nll(language_model(), TOKENS[:1], windows) == (0.0, 0)


def test_the_loss_of_a_trained_model_on_new_random_text_is_not_below_ln_v() -> None:
    """Invariant A: a model whose input leaks the labels would go below."""
    rng = np.random.default_rng(3)
    train, fresh = (rng.integers(0, V, size).astype(np.int32) for size in (6_000, 3_000))
    model = language_model(positions="rotary", num_decoder_layers=1).float().train()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    sampler = BlockSampler(len(train), block=16, rows=8, seed=1)
    for starts in [*sampler.epoch(0), *sampler.epoch(1)]:
        batch = make_blocks(train, starts, 16)
        loss, _ = next_token_loss(model, batch, 0.0)
        (loss / batch.target_tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    nats, count = window_nll(model.eval(), fresh, Windows(len(fresh), width=16, step=16))
    assert (
        math.log(V) < nats / count < math.log(V) + 0.5
    )  # and the model has learned to predict a nearly uniform distribution
