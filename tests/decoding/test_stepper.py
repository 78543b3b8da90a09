"""Decoding one token at a time, compared with teacher forcing, after any selection of rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.model.samples import BOS, PAD, random_ids, scrambled_model
from tests.tolerances import assert_close
from torch import Tensor

from manyheads.decoding import layers
from manyheads.decoding.kv_cache import _FIRST_CAPACITY
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.positions import _FIRST_ROWS
from manyheads.search.interface import Stepper

TARGET_SIZE = 47
Rows = list[int]

# The argument of `select` after each step; None stands for no selection.
HISTORIES: dict[str, list[Rows | None]] = {
    "nothing is selected": [None] * 4,
    "rows in another order": [[2, 0, 1], [1, 0, 2], None],
    "a beam of two, reordered within sentences": [[0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 5, 4], [1, 1, 3, 2, 4, 4]],
    "a beam whose sentences change places": [[1, 1, 0, 0, 2, 2], [4, 5, 1, 0, 2, 3], None],
    "a beam that starts after some steps": [None, None, [0, 0, 0, 1, 1, 1, 2, 2, 2], [2, 0, 0, 4, 4, 5, 7, 6, 6]],
    "a beam that stays in place, then sentences change places": [
        [0, 0, 1, 1, 2, 2],
        [4, 5, 0, 1, 3, 2],
        [1, 0, 2, 2, 5, 4],
    ],
    "a beam in which one sentence comes twice": [[0, 0, 1, 1, 2, 2], [1, 0, 0, 0, 4, 5], [1, 1, 3, 2, 4, 5]],
    "sentences that end": [[0, 0, 1, 1, 2, 2], [0, 1, 4, 5], [3, 2], [1]],
    "a sentence that ends while the others stay in place": [[0, 0, 1, 1, 2, 2], [1, 0, 3, 2], [0, 0, 2, 3]],
    "unequal numbers of rows": [[0, 0, 1, 1, 2, 2], [1, 2, 3, 5, 4], [0, 1, 3], [2, 2, 0, 0, 1]],
    "unequal, though their total could be shared out": [[0, 1, 1, 1, 2, 2], [0, 0, 0, 2, 3, 3], [0, 3, 4, 5], None],
    "unequal, then equal again": [[0, 1, 1, 2], [0, 0, 1, 2, 3, 3], [0, 1, 2, 4], [0, 0, 1, 1, 2, 2, 3, 3]],
    "rows of a sentence apart": [[0, 1, 2, 0, 1, 2], [3, 1, 5, 0, 4, 2], [0, 3, 1, 4]],
    "as many rows as before, of other sentences": [[0, 0, 2], [2, 1, 0], [0, 1, 1]],
}


def padded_source(model: EncoderDecoder) -> Tensor:
    """Return three sources of different lengths: (3, 11)."""
    source = random_ids(3, 11, model.source_embedding.tokens.num_embeddings)
    source[1, 8:], source[2, 3:] = PAD, PAD
    return source


@torch.no_grad()
def check_history(
    model: EncoderDecoder,
    source: Tensor,
    history: list[Rows | None],
    start: Callable[[EncoderDecoder, Tensor], Stepper] = EncoderDecoderStepper,
) -> None:
    """Step through a history and compare every row with teacher forcing at every step."""
    stepper = start(model, source)
    sentences = torch.arange(source.size(0))
    prefixes = torch.empty(source.size(0), 0, dtype=torch.int64)
    for number, rows in enumerate(history):
        latest = torch.full((len(sentences),), BOS)
        if number:
            latest = random_ids(1, len(sentences), TARGET_SIZE, seed=100 + number)[0]
        prefixes = torch.cat([prefixes, latest[:, None]], 1)
        found = stepper.step(latest)
        right = model(source[sentences], prefixes)[:, -1].log_softmax(-1)
        assert found.dtype == torch.float32
        assert_close(found, right)
        if rows is not None:
            chosen = torch.tensor(rows)
            stepper.select(chosen)
            sentences, prefixes = sentences[chosen], prefixes[chosen]


@pytest.mark.parametrize(("few", "positions"), [(0, "sinusoidal"), (4, "rotary")])
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES.keys())
def test_after_any_selection_steps_give_the_teacher_forced_probabilities(
    history, few, positions, monkeypatch
) -> None:
    """Use the fused attention kernel for few sentences, and separate operations for more."""
    monkeypatch.setattr(layers, "_MAX_SENTENCES_FOR_FUSED_ATTENTION", few)
    model = scrambled_model(positions=positions, num_encoder_layers=1, num_decoder_layers=2)
    check_history(model, padded_source(model), [*history, None])


def test_steps_give_the_teacher_forced_probabilities_of_every_variant(model) -> None:
    check_history(model, padded_source(model), [*HISTORIES["sentences that end"], None])


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_after_many_random_selections_steps_give_the_teacher_forced_probabilities(seed, together) -> None:
    """Exceed the first capacity of the cache; rows of a sentence are adjacent, as in a search, or not."""
    generator = torch.Generator().manual_seed(seed)
    model = scrambled_model(seed, num_encoder_layers=1)
    rows, history = 3, []
    for _ in range(_FIRST_CAPACITY + 7):
        after = int(torch.randint(1, 7, (1,), generator=generator))
        chosen = torch.randint(rows, (after,), generator=generator).tolist()
        history.append(sorted(chosen) if together else chosen)
        rows = after
    check_history(model, padded_source(model), history)


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_steps_beyond_the_first_table_of_positions_give_the_teacher_forced_probabilities(positions) -> None:
    model = scrambled_model(positions=positions, num_encoder_layers=1, num_decoder_layers=1)
    source, target = padded_source(model), random_ids(3, _FIRST_ROWS + 7, TARGET_SIZE)
    stepper = EncoderDecoderStepper(model, source)
    stepped = torch.stack([stepper.step(tokens) for tokens in target.unbind(1)], 1)
    assert_close(stepped, model(source, target).log_softmax(-1))


@torch.no_grad()
def test_a_beam_stores_the_memory_of_a_sentence_once() -> None:
    model = scrambled_model()
    stepper = EncoderDecoderStepper(model, padded_source(model))
    before = 3
    for rows in ([0, 0, 0, 1, 1, 1, 2, 2, 2], [2, 0, 0, 8, 8, 7], [3, 3, 3]):
        stepper.step(torch.full((before,), BOS))
        stepper.select(torch.tensor(rows))
        before = len(rows)
        held = [tensor.size(0) for pair in stepper.memory for tensor in pair]
        assert set(held) == {before // 3}
        assert stepper.cache.store.size(2) == before // 3


@torch.no_grad()
def test_two_searches_on_one_model_are_independent(model) -> None:
    source = padded_source(model)
    alone = EncoderDecoderStepper(model, source)
    right = [alone.step(torch.full((3,), token)) for token in (BOS, 7, 11)]
    first, second = EncoderDecoderStepper(model, source), EncoderDecoderStepper(model, source.flip(0))
    for token, expected in zip((BOS, 7, 11), right, strict=True):
        torch.testing.assert_close(first.step(torch.full((3,), token)), expected)
        second.step(torch.full((3,), 13))
        second.select(torch.tensor([2, 0, 1]))
