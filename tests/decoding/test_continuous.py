"""Continuous batching: a sentence that is added to a running batch gets the output of a separate search."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from tests.inference.translation.test_translator import lines, make_translator
from tests.tolerances import approx

from manyheads.decoding.beam import beam_search
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import OverflowedError
from manyheads.inference.batching import SPECIAL_IDS, ContinuousBatching
from manyheads.inference.engines import AutoEngine
from manyheads.inference.native.build import library
from manyheads.inference.translation.translator import Translator
from manyheads.search.interface import Hypothesis, never_cancelled
from manyheads.search.options import Constraints, Sampling, SearchOptions
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import EOS, PAD

CACHE_MARGIN = 8  # in beam_memory.h: a longer output needs a larger KV cache

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler here")


def rows_of(translator: Translator, count: int) -> list[list[int]]:
    return translator.tokenizers.source.encode(lines(count))


def options(beam_size: int, n_best: int = 1, offset: int = 3) -> SearchOptions:
    return SearchOptions(beam_size=beam_size, length_penalty=0.7, max_length_ratio=1.5, max_length_offset=offset,
                         batch_tokens=1_000, n_best=n_best)  # fmt: skip


@torch.no_grad()
def search_separately(translator: Translator, row: list[int], search_options: SearchOptions) -> list[Hypothesis]:
    """Search one sentence by itself with torch operators."""
    return beam_search(
        EncoderDecoderStepper(translator.model, pad_rows([row], PAD, last=EOS)),
        search_options,
        torch.tensor(search_options.longest([row], 40)),
        SPECIAL_IDS,
    )[0]


def begin_search(translator: Translator, search_options: SearchOptions) -> ContinuousBatching:
    assert isinstance(translator.engine, AutoEngine)
    return translator.engine.begin(search_options)


def search_with_random_arrivals(
    search: ContinuousBatching, rows: list[list[int]], seed: int
) -> list[list[Hypothesis]]:
    """Return the outputs of rows that are added at random times."""
    rng, found = random.Random(seed), dict[int, list[Hypothesis]]()
    waiting, most = list(range(len(rows))), 0
    while waiting or search.batches:
        while waiting and rng.random() < 0.4:
            count = rng.randint(1, 3)
            added, waiting = waiting[:count], waiting[count:]

            def on_finished(number: int, outputs: list[Hypothesis], indices: list[int] = added) -> None:
                assert indices[number] not in found
                found[indices[number]] = outputs

            search.add([rows[index] for index in added], never_cancelled, on_finished)
        if search.batches:
            most = max(most, len(search.batches))
            search.step()
    assert most > 3
    return [found[index] for index in range(len(rows))]


@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), (4, 1), (3, 3)])
def test_a_sentence_added_at_any_step_gets_the_output_of_a_separate_search(beam_size: int, n_best: int) -> None:
    translator, search_options = make_translator(), options(beam_size, n_best)
    rows = rows_of(translator, 40)
    found = search_with_random_arrivals(begin_search(translator, search_options), rows, seed=7)
    for row, outputs in zip(rows, found, strict=True):
        right = search_separately(translator, row, search_options)
        assert [output.tokens for output in outputs] == [output.tokens for output in right]
        for output, alone in zip(outputs, right, strict=True):
            assert output.token_scores == approx(alone.token_scores)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("beam_size", "n_best", "positions"), [(1, 1, "rotary"), (5, 2, "sinusoidal"), (3, 3, "learned")]
)
def test_outputs_do_not_depend_on_the_step_at_which_a_sentence_is_added(
    beam_size, n_best, positions, threads
) -> None:
    """Some outputs are so long that the KV cache is enlarged."""
    translator = make_translator(positions=positions, end_bias=0.5)
    search_options, rows = options(beam_size, n_best, offset=20), rows_of(translator, 40)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        search = begin_search(translator, search_options)
        found = search_with_random_arrivals(search, rows, seed=11)
        again = begin_search(translator, search_options)
        assert found == search_with_random_arrivals(again, rows, seed=13)
    finally:
        torch.set_num_threads(before)
    lengths = [len(outputs[0].tokens) for outputs in found]
    assert any(length > len(row) + 1 + CACHE_MARGIN for length, row in zip(lengths, rows, strict=True))


def test_an_output_is_reported_at_the_step_that_finishes_it() -> None:
    translator, search_options = make_translator(end_bias=-1e9), options(4)  # outputs end at the length limit
    search, ended = begin_search(translator, search_options), dict[int, int]()
    steps = 0
    search.add([[5] * 10, [6] * 2], never_cancelled, lambda number, outputs: ended.update({number: steps}))
    while search.batches:
        steps += 1
        search.step()
    assert ended == {1: 7, 0: 19}  # one step more than the longest outputs, 1.5 times the source and 3


def test_a_cancelled_row_finishes_at_the_next_step_and_the_others_are_unchanged() -> None:
    translator, search_options = make_translator(end_bias=-1e9), options(4)
    rows = [[5, 6, 7] * 3, [6, 7] * 4, [7, 5, 9]]
    search, found, cancelled = begin_search(translator, search_options), dict[int, list[Hypothesis]](), list[int]()
    search.add(rows[:2], lambda: cancelled, found.__setitem__)
    search.add(rows[2:], never_cancelled, lambda number, outputs: found.__setitem__(2, outputs))
    search.step()
    search.step()
    assert not found
    cancelled.append(0)
    search.step()
    assert set(found) == {0}
    while search.batches:
        search.step()
    for index in (1, 2):
        assert found[index][0].tokens == search_separately(translator, rows[index], search_options)[0].tokens


def test_nan_in_the_logits_raises_a_floating_point_error() -> None:
    translator = make_translator()
    with torch.no_grad():
        translator.model.output.bias[7] = float("nan")
    search = begin_search(translator, options(4))
    search.add([[5, 6]], never_cancelled, lambda number, outputs: None)
    with pytest.raises(OverflowedError):
        search.step()


def test_only_a_plain_search_can_be_batched_continuously() -> None:
    engine = make_translator().engine
    assert engine.can_batch_continuously(options(4, 2))  # type: ignore[attr-defined]
    assert not engine.can_batch_continuously(options(4), [Constraints((5,))])  # type: ignore[attr-defined]
    for changes in ("no_repeat_ngram", 2), ("alignment", True), ("sampling", Sampling()), ("min_length_ratio", 0.5):
        other = replace(options(4), **dict([changes]))
        assert not engine.can_batch_continuously(other)  # type: ignore[attr-defined]
