"""Continuous batching: a sentence that joins a running batch gets the output of a search of its own."""

from __future__ import annotations

import random

import pytest
import torch
from tests.tasks.test_translation import lines, make_translator

from manyheads.data.batch import pad_rows
from manyheads.decoding import model as inference_model
from manyheads.decoding.batching import SUPPRESSED_IDS, ContinuousBatching
from manyheads.decoding.continuous import TorchContinuousBatching
from manyheads.decoding.engine import TorchEngine
from manyheads.decoding.native.beams import CACHE_MARGIN
from manyheads.decoding.native.build import library
from manyheads.decoding.native.continuous import NativeContinuousBatching
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.search.beam import beam_search
from manyheads.search.interface import Hypothesis, never_cancelled
from manyheads.search.options import SearchOptions
from manyheads.search.parameters import SearchParameters
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import BOS, EOS, PAD

needs_compiler = pytest.mark.skipif(library() is None, reason="no C compiler here")


def rows_of(translator: Translator, count: int) -> list[list[int]]:
    return translator.tokenizers.source.encode(lines(count))


def options(beam_size: int, n_best: int = 1, offset: int = 3) -> SearchOptions:
    return SearchOptions(beam_size=beam_size, length_penalty=0.7, max_length_ratio=1.5, max_length_offset=offset,
                         batch_tokens=1_000, n_best=n_best)  # fmt: skip


@torch.no_grad()
def alone(translator: Translator, row: list[int], asked: SearchOptions) -> list[Hypothesis]:
    """Search one sentence by itself with torch operators."""
    return beam_search(
        EncoderDecoderStepper(translator.model, pad_rows([row], PAD, last=EOS)),
        SearchParameters(
            beam_size=asked.beam_size,
            n_best=asked.n_best,
            length_penalty=asked.length_penalty,
            max_lengths=torch.tensor(asked.longest([row], 40)),
            bos=BOS,
            eos=EOS,
            suppressed=SUPPRESSED_IDS,
        ),
    )[0]


def begun(translator: Translator, asked: SearchOptions, *, compiled: bool) -> ContinuousBatching:
    """Start continuous batching in native code, or with torch operators."""
    engine = translator.engine
    assert isinstance(engine, TorchEngine)
    if not compiled:
        with engine.evaluating():
            engine.packed[0].native = None
    search = engine.begin(asked)
    assert isinstance(search, NativeContinuousBatching) == (compiled and library() is not None)
    return search


def all_joined(search: ContinuousBatching, rows: list[list[int]], seed: int) -> list[list[Hypothesis]]:
    """Return the outputs of rows that are added at random times."""
    rng, found = random.Random(seed), dict[int, list[Hypothesis]]()
    left, most = list(range(len(rows))), 0
    while left or search.batches:
        while left and rng.random() < 0.4:
            count = rng.randint(1, 3)
            joining, left = left[:count], left[count:]

            def tell(number: int, outputs: list[Hypothesis], places: list[int] = joining) -> None:
                assert places[number] not in found
                found[places[number]] = outputs

            search.add([rows[place] for place in joining], never_cancelled, tell)
        if search.batches:
            most = max(most, len(search.batches))
            search.step()
    assert most > 3
    return [found[place] for place in range(len(rows))]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), (4, 1), (3, 3)])
def test_whenever_a_sentence_joins_it_comes_out_as_alone(beam_size: int, n_best: int, compiled: bool) -> None:
    translator, asked = make_translator(), options(beam_size, n_best)
    rows = rows_of(translator, 40)
    found = all_joined(begun(translator, asked, compiled=compiled), rows, seed=7)
    for row, outputs in zip(rows, found, strict=True):
        right = alone(translator, row, asked)
        assert [one.tokens for one in outputs] == [one.tokens for one in right]
        for one, other in zip(outputs, right, strict=True):
            assert one.token_scores == pytest.approx(other.token_scores, abs=2e-5)


@needs_compiler
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("beam_size", "n_best", "positions"), [(1, 1, "rotary"), (5, 2, "sinusoidal"), (3, 3, "learned")]
)
def test_beams_in_c_find_what_those_in_python_find_to_the_bit(beam_size, n_best, positions, threads) -> None:
    """From the same log-probabilities; some outputs are so long that their KV cache must be enlarged."""
    translator = make_translator(positions=positions, end_bias=0.5)
    asked, rows = options(beam_size, n_best, offset=20), rows_of(translator, 40)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        search = begun(translator, asked, compiled=True)
        found = all_joined(search, rows, seed=11)
        assert found == all_joined(TorchContinuousBatching(translator.engine.packed[0], asked), rows, seed=13)
    finally:
        torch.set_num_threads(before)
    assert any(
        len(outputs[0].tokens) > len(row) + 1 + CACHE_MARGIN for outputs, row in zip(found, rows, strict=True)
    )


@needs_compiler
def test_sources_that_torch_reads_are_searched_in_c_all_the_same(monkeypatch) -> None:
    translator, asked = make_translator(), options(4)
    rows = rows_of(translator, 20)
    monkeypatch.setattr(inference_model, "MAX_SOURCE_LENGTH", 6)
    search = begun(translator, asked, compiled=True)
    assert all_joined(search, rows, seed=3) == all_joined(
        TorchContinuousBatching(translator.engine.packed[0], asked), rows, seed=3
    )


@pytest.mark.parametrize("compiled", [True, False])
def test_an_output_is_told_as_soon_as_it_is_known(compiled: bool) -> None:
    translator, asked = make_translator(end_bias=-1e9), options(4)  # outputs are cut at their longest
    search, ended = begun(translator, asked, compiled=compiled), dict[int, int]()
    steps = 0
    search.add([[5] * 10, [6] * 2], never_cancelled, lambda number, outputs: ended.update({number: steps}))
    while search.batches:
        steps += 1
        search.step()
    assert ended == {1: 7, 0: 19}  # one step more than the longest outputs, 1.5 times the source and 3


@pytest.mark.parametrize("compiled", [True, False])
def test_the_abandoned_leave_at_the_next_step_and_the_others_do_not_notice(compiled: bool) -> None:
    translator, asked = make_translator(end_bias=-1e9), options(4)
    rows = [[5, 6, 7] * 3, [6, 7] * 4, [7, 5, 9]]
    search, found, gone = begun(translator, asked, compiled=compiled), dict[int, list[Hypothesis]](), list[int]()
    search.add(rows[:2], lambda: gone, found.__setitem__)
    search.add(rows[2:], never_cancelled, lambda number, outputs: found.__setitem__(2, outputs))
    search.step()
    search.step()
    assert not found
    gone.append(0)
    search.step()
    assert set(found) == {0}
    while search.batches:
        search.step()
    for place in (1, 2):
        assert found[place][0].tokens == alone(translator, rows[place], asked)[0].tokens


@pytest.mark.parametrize("compiled", [True, False])
def test_what_is_not_a_number_is_told(compiled: bool) -> None:
    translator = make_translator()
    with torch.no_grad():
        translator.model.output.bias[7] = float("nan")
    search = begun(translator, options(4), compiled=compiled)
    search.add([[5, 6]], never_cancelled, lambda number, outputs: None)
    with pytest.raises(FloatingPointError):
        search.step()


def test_only_a_plain_search_can_be_joined() -> None:
    engine = make_translator().engine
    assert engine.can_batch_continuously(options(4, 2))  # type: ignore[attr-defined]
    for changes in ({"no_repeat_ngram": 2}, {"alignment": True}, {"prefixes": ((5,),)}, {"min_length_ratio": 0.5}):
        other = SearchOptions(**(vars(options(4)) | changes))
        assert not engine.can_batch_continuously(other)  # type: ignore[attr-defined]
