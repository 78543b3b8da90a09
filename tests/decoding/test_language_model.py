"""Decoding one token at a time, compared with forward passes on whole texts (invariants C, D and E)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.model.samples import random_ids, scramble
from tests.tolerances import assert_close
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.decoding.language_model import _MIN_FREE_CAPACITY, DecoderOnlyStepper
from manyheads.inference.window import held_tokens
from manyheads.model.decoder_only import DecoderOnly

V = 47
POSITIONS = ["sinusoidal", "learned", "rotary"]


def language_model(seed: int = 1, **changes: Any) -> DecoderOnly:
    """Return a model with D = 30 in 3 heads, 2 layers, float64, and weights of the size of trained ones."""
    torch.manual_seed(seed)
    sizes = {"d_model": 30, "d_ff": 37, "num_heads": 3, "num_decoder_layers": 2, "max_positions": 97}
    model = DecoderOnly(ModelConfig(**(sizes | {"dropout": 0.0} | changes)), V).double().eval()
    scramble(model)
    return model


def read_whole(model: DecoderOnly, text: list[int], window: int) -> Tensor:
    """Return the next log-probabilities of a text by a forward pass on the tokens in its window: (V,)."""
    held = text[len(text) - held_tokens(len(text), window) :]
    return model(torch.tensor([held]))[0, -1].log_softmax(-1).float()


def check(model: DecoderOnly, texts: list[list[int]], history: list[list[int] | None], window: int) -> None:
    """Step through a history of selections, and compare every row with its whole text at every step."""
    stepper = DecoderOnlyStepper(model, texts, window)
    texts = [list(text) for text in texts]
    latest = torch.zeros(len(texts), dtype=torch.int64)
    for number, rows in enumerate(history):
        found = stepper.step(latest)
        assert found.dtype == torch.float32
        right = torch.stack([read_whole(model, text, window) for text in texts])
        assert_close(found, right)
        if rows is not None:
            stepper.select(torch.tensor(rows))
            texts = [list(texts[row]) for row in rows]
        latest = random_ids(1, len(texts), V, seed=100 + number)[0]
        for text, token in zip(texts, latest.tolist(), strict=True):
            text.append(token)


def prompts(*lengths: int) -> list[list[int]]:
    return [random_ids(1, length, V, seed=7 + length)[0].tolist() for length in lengths]


@pytest.mark.parametrize("positions", POSITIONS)
@torch.no_grad()
def test_rows_of_different_lengths_equal_separate_forward_passes(positions: str) -> None:
    """Exceed the first capacity, select before the first step, repeat and drop rows."""
    history: list[list[int] | None] = [
        [2, 0, 1, 1],
        None,
        [3, 0, 2],
        None,
        [1, 1, 0],
        [2],
        *[None] * (_MIN_FREE_CAPACITY + 5),
    ]
    check(language_model(positions=positions), prompts(5, 11, 2), history, window=97)


@pytest.mark.parametrize("window", [2, 3, 7, 8])
@torch.no_grad()
def test_a_full_window_continues_with_its_last_half_independently_of_other_rows(window: int) -> None:
    history: list[list[int] | None] = [*[None] * 5, [1, 2, 0], *[None] * 40]
    check(language_model(positions="learned", max_positions=window), prompts(1, 19, 6), history, window)


@torch.no_grad()
def test_a_prompt_read_at_once_equals_a_prompt_read_token_by_token() -> None:
    """Compare contexts of different lengths, each followed by the remaining tokens one by one."""
    model, (text,) = language_model(positions="rotary"), prompts(29)
    for read in (1, 4, 12, 28):
        stepper = DecoderOnlyStepper(model, [text[:read]], window=9)
        found = stepper.step(torch.zeros(1, dtype=torch.int64))
        for token in text[read:]:
            found = stepper.step(torch.tensor([token]))
        assert_close(found[0], read_whole(model, text, 9))


@pytest.mark.parametrize(
    "changes", [{"norm": "post", "activation": "swiglu"}, {"bias": False, "tied_embeddings": "none"}]
)
@torch.no_grad()
def test_other_variants_equal_forward_passes_on_whole_texts(changes: dict[str, Any]) -> None:
    check(language_model(**changes), prompts(4, 1), [None, [1, 0, 0], *[None] * 12], window=11)


@torch.no_grad()
def test_the_size_of_the_cache_does_not_grow_with_the_text() -> None:
    stepper = DecoderOnlyStepper(language_model(), prompts(5, 3), window=8)
    for _ in range(200):
        stepper.step(torch.tensor([5, 9]))
    assert stepper.store.size(4) <= 2 * 8 + _MIN_FREE_CAPACITY


@pytest.mark.parametrize("contexts", [[], [[]], [[5], []]])
def test_a_context_without_tokens_is_refused(contexts: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        DecoderOnlyStepper(language_model(), contexts, window=8)
