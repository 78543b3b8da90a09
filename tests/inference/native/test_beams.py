"""Searches in C have the outputs of those in Python; the bookkeeping of a beam has them to the bit."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.translation.test_translator import lines, make_translator
from tests.search.tables import BOS, EOS, PAD, Prefix, Table
from tests.tolerances import approx

from manyheads.config.schema import SearchConfig
from manyheads.decoding.beam import beam_search
from manyheads.decoding.candidates import best_tokens
from manyheads.decoding.engine import TorchEngine
from manyheads.inference.engines import AutoEngine
from manyheads.inference.native import build
from manyheads.inference.native.beams import NativeBeam, NativeBeams, can_search
from manyheads.inference.native.structs import Beam, BeamOptions, BeamStatus, Model, Step
from manyheads.inference.native_engine import NativeEngine
from manyheads.inference.translation.translator import Translator
from manyheads.search.beam_state import divisors
from manyheads.search.interface import Hypothesis, SpecialIds, never_cancelled
from manyheads.search.options import Constraints, Sampling, SearchOptions

pytestmark = pytest.mark.skipif(build.library() is None, reason="no C compiler here")

WRAPPER = """#include "{}"
void advance(Beam *beam, const BeamOptions *options, float *values, int64_t *tokens) {{
    advance_beam(beam, options, values, tokens);
}}
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Compile `advance`, which updates a beam with the scores of a model's step."""
    folder = tmp_path_factory.mktemp("native")
    source = folder / "wrapper.c"
    source.write_text(WRAPPER.format(Path(build.__file__).with_name("beam_search.h")))
    return ctypes.CDLL(str(build._compile_library(source, folder / "wrapper.so")))


@dataclass(frozen=True)
class Search:
    """The parameters of a search."""

    beam_size: int
    n_best: int
    length_penalty: float
    limit: int
    forbidden: tuple[int, ...] = (PAD, BOS)


@dataclass
class Trace:
    """The record of a search: the tokens that each step appends, the prefixes of its rows, and the outputs."""

    tokens: list[list[int]] = field(default_factory=list)
    prefixes: list[list[Prefix]] = field(default_factory=list)
    found: list[Hypothesis] = field(default_factory=list)


def candidates(table: Table, prefixes: list[Prefix], search: Search) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-probabilities and ids of the best next tokens of each row."""
    rows = torch.stack([table.log_probs(prefix) for prefix in prefixes])
    values, ids = best_tokens(rows, search.beam_size + 1, search.forbidden)
    return values.numpy(), ids.numpy()


def search_in_python(table: Table, search: Search, cancelled_at: int) -> Trace:
    """Run the search in Python, and record its steps."""
    stepper = RecordingStepper(table, search, cancelled_at)
    (stepper.trace.found,) = beam_search(
        stepper,
        SearchOptions(beam_size=search.beam_size, n_best=search.n_best, length_penalty=search.length_penalty),
        torch.tensor([search.limit]),
        SpecialIds(BOS, EOS, search.forbidden),
    )
    return stepper.trace


class RecordingStepper:
    """A `Stepper` of a table that records its calls."""

    def __init__(self, table: Table, search: Search, cancelled_at: int) -> None:
        self.table, self.search, self.cancelled_at = table, search, cancelled_at
        self.trace, self.prefixes = Trace(), [()]

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        if self.trace.tokens:
            self.prefixes = [(*prefix, token) for prefix, token in zip(self.prefixes, tokens.tolist(), strict=True)]
        self.trace.tokens.append(tokens.tolist())
        self.trace.prefixes.append(self.prefixes)
        log_probs = torch.stack([self.table.log_probs(prefix) for prefix in self.prefixes])
        if len(self.trace.tokens) > self.cancelled_at:
            log_probs[:] = -torch.inf
            log_probs[:, EOS] = 0.0
        return log_probs

    def select(self, rows: torch.Tensor) -> None:
        self.prefixes = [self.prefixes[row] for row in rows.tolist()]


def begin_beam(options: BeamOptions, limit: int, step: Step) -> NativeBeam:
    """Begin the search of a sentence by a model with one layer, one head and a width of 1."""
    library, beam = build.library(), NativeBeam(Beam(step=step, max_length=limit))
    assert library is not None
    beam.begin(library, Model(num_layers=1, d_model=1, num_heads=1), options)
    return beam


def search_in_c(code: ctypes.CDLL, table: Table, search: Search, cancelled_at: int) -> Trace:
    """Run the search in C, and rebuild the prefixes from the cache positions that each row attends to."""
    trace, cache = Trace(), list[int]()
    norms = divisors(search.limit + 1, search.length_penalty)
    options = BeamOptions(search.beam_size, search.n_best, EOS, 3, 5, norms.ctypes.data)
    beam = begin_beam(options, search.limit, Step(position_signal=4_000, rotary=8_000, source_length=1))
    state = beam.struct
    for count in range(search.limit + 1):
        rows, indices = state.step.rows, ctypes.cast(state.step.visible, ctypes.POINTER(ctypes.c_int32))
        visible = np.ctypeslib.as_array(indices, (rows, state.step.num_visible))
        assert state.step.length == len(cache) + rows <= state.step.capacity
        assert (state.step.position_signal, state.step.rotary) == (4_000 + 12 * count, 8_000 + 20 * count)
        cache += (latest := (ctypes.c_int64 * rows).from_address(state.latest)[:])
        prefixes = [tuple(cache[index] for index in row[1:]) for row in visible.tolist()]
        trace.tokens.append(latest)
        trace.prefixes.append(prefixes)
        values, ids = candidates(table, prefixes, search)
        values, ids = np.ascontiguousarray(values, dtype=np.float32), np.ascontiguousarray(ids)
        if len(trace.tokens) > cancelled_at:
            beam.cancel()
        code.advance(
            ctypes.byref(state), ctypes.byref(options), ctypes.c_void_p(values.ctypes.data),
            ctypes.c_void_p(ids.ctypes.data),
        )  # fmt: skip
        if state.status == BeamStatus.BEAM_ENDED:
            trace.found = beam.outputs()
            return trace
        if state.status != BeamStatus.BEAM_RUNNING:
            beam.enlarge_cache()
    raise AssertionError("the search continues after its longest output")


def trees() -> Iterator[st.SearchStrategy[Table]]:
    return st.builds(
        Table,
        seed=st.integers(0, 10_000),
        size=st.integers(9, 14),
        end_bias=st.sampled_from([-torch.inf, -4.0, 0.0, 2.0, 5.0]),
        steps=st.sampled_from([0, 1, 4]),
        impossible=st.sampled_from([0.0, 0.4, 0.9]),
        sharpness=st.sampled_from([0.0, 1.0, 1.5]),
    )


@settings(max_examples=80)
@given(
    table=trees(),
    widths=st.integers(1, 6).flatmap(lambda size: st.tuples(st.just(size), st.integers(1, size))),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    limit=st.sampled_from([0, 1, 2, 5, 30]),
    forbidden=st.sampled_from([(PAD, BOS), (), (PAD, BOS, EOS), tuple(range(9))]),
    cancelled_at=st.sampled_from([99, 99, 99, 0, 1, 3]),
)
def test_every_step_and_all_outputs_are_those_of_the_beam_in_python(
    code, table, widths, length_penalty, limit, forbidden, cancelled_at
) -> None:
    """Include ties, impossible tokens, prefixes without continuation, truncation, and early and late ends."""
    search = Search(*widths, length_penalty, limit, forbidden)
    right, found = search_in_python(table, search, cancelled_at), search_in_c(code, table, search, cancelled_at)
    assert found.tokens == right.tokens
    assert found.prefixes == right.prefixes
    if cancelled_at >= len(found.tokens) or EOS not in forbidden:  # outputs of a cancelled search mean nothing
        assert found.found == right.found


def test_every_step_counts_the_end_at_the_limit_too(code) -> None:
    """Keep a truncated output that is likelier than an output whose improbable end is the best continuation."""

    class Planned(Table):
        def log_probs(self, prefix: Prefix) -> torch.Tensor:
            shares = {(): {EOS: 0.4, 4: 0.35, 5: 0.25}, (5,): {EOS: 0.1, 6: 0.9}}
            row = torch.zeros(11)
            for token, share in shares.get(prefix, {EOS: 0.16} | dict.fromkeys(range(4, 11), 0.12)).items():
                row[token] = share
            return row.log()

    search = Search(2, 2, 0.0, limit=1)
    found = search_in_c(code, Planned(0), search, 99).found
    assert [output.tokens for output in found] == [(), (5,)]
    assert found == search_in_python(Planned(0), search, 99).found


def test_a_score_that_is_not_a_number_sets_the_status_nan(code) -> None:
    norms = divisors(4, 1.0)
    options = BeamOptions(2, 1, EOS, 0, 0, norms.ctypes.data)
    beam = begin_beam(options, 3, Step(source_length=1))
    values, ids = np.array([-0.5, -1.0, np.nan], dtype=np.float32), np.array([5, 6, 7])
    arrays = (ctypes.c_void_p(array.ctypes.data) for array in (values, ids))
    code.advance(ctypes.byref(beam.struct), ctypes.byref(options), *arrays)
    assert beam.struct.status == BeamStatus.BEAM_NAN


OPTIONS = {
    "greedy": SearchOptions(beam_size=1),
    "beam": SearchOptions(beam_size=4, n_best=3),
    "minimum length": SearchOptions(beam_size=3, min_length_ratio=1.3),
    "no repeated tokens": SearchOptions(beam_size=1, no_repeat_ngram=1),
    "no repeated pairs": SearchOptions(beam_size=3, n_best=2, no_repeat_ngram=2),
    "sampling": SearchOptions(n_best=3, sampling=Sampling(seed=3)),
    "top_k": SearchOptions(n_best=2, sampling=Sampling(temperature=1.5, top_k=3, seed=4)),
    "top_p": SearchOptions(sampling=Sampling(temperature=0.8, top_p=0.7, seed=5), no_repeat_ngram=2),
    "top_k and top_p": SearchOptions(sampling=Sampling(top_k=5, top_p=0.9), min_length_ratio=1.0),
}


def native_engine(translator: Translator) -> NativeEngine:
    """Return the engine in C of a translator in memory."""
    assert isinstance(translator.engine, AutoEngine)
    engine = translator.engine.native_engine
    assert engine is not None
    return engine


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_whole_search_has_the_outputs_of_torch(name: str, constrained: bool) -> None:
    translator = make_translator(end_bias=1.0)
    rows, rng = translator.tokenizers.source.encode(lines(30)), random.Random(1)
    settings = SearchConfig(length_penalty=0.7, max_length_ratio=1.5, max_length_offset=3, batch_tokens=300)
    options, size = OPTIONS[name].complete(vars(settings)), translator.tokenizers.target.size

    def tokens(least: int, most: int) -> tuple[int, ...]:
        return tuple(rng.choices(range(4, size), k=rng.randint(least, most)))

    constraints = [
        Constraints(tokens(0, 3), tuple(tokens(1, 2) for _ in range(rng.randint(0, 9))))
        for _ in rows
        if constrained
    ]
    engine = native_engine(translator)
    found = engine.search(rows, options, constraints)
    expected = TorchEngine([translator.model]).search(rows, options, constraints)
    for outputs, others in zip(found, expected, strict=True):
        assert [(hypothesis.tokens, hypothesis.ended) for hypothesis in outputs] == [
            (hypothesis.tokens, hypothesis.ended) for hypothesis in others
        ]
        for hypothesis, other in zip(outputs, others, strict=True):
            assert hypothesis.token_scores == approx(other.token_scores)
    if constrained:
        assert engine.search(rows, options) != found, "the constraints change outputs"


def test_required_words_and_small_vocabularies_are_left_to_torch() -> None:
    model, beam = native_engine(make_translator()).model, SearchOptions(beam_size=3)
    assert can_search(model, beam)
    assert not can_search(model, beam, [Constraints(), Constraints(required=((5,),))])
    assert not can_search(model, SearchOptions(beam_size=model.vocabulary - 3))
    assert can_search(model, SearchOptions(beam_size=model.vocabulary, sampling=Sampling()))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("prefix_length", -1, "length of a prefix -1"),
        ("history", None, "forbidden sequences 1"),
        ("num_forbidden", -1, "forbidden sequences -1"),
    ],
)
def test_constraints_without_their_arrays_are_refused(field: str, value: object, message: str) -> None:
    model = native_engine(make_translator()).model
    beams = NativeBeams(model, OPTIONS["beam"].complete(vars(SearchConfig())))
    beams.add([[5, 6]], never_cancelled, lambda index, outputs: None, [Constraints((5,), ((6, 7),))])
    setattr(beams.running[0].struct, field, value)
    with pytest.raises(ValueError, match=message):
        beams.step()


@pytest.mark.parametrize("constraints", [Constraints((99_999,)), Constraints(forbidden=((5, 99_999),))])
def test_tokens_of_constraints_outside_of_the_vocabulary_are_refused(constraints: Constraints) -> None:
    engine = native_engine(make_translator())
    with pytest.raises(ValueError, match=r"token( of a prefix)? 99999"):
        engine.search([[5, 6]], OPTIONS["beam"].complete(vars(SearchConfig())), [constraints])
