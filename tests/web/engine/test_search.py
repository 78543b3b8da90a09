"""The searches of the browser engine give the same outputs as the engines of Python, token by token."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from tests.model.samples import (
    BOS,
    EOS,
    PAD,
    TARGET_SIZE,
    UNK,
    VARIANTS,
    language_model,
    random_ids,
    scaled_heads,
    scrambled_model,
)
from tests.tolerances import approx, assert_close, within
from tests.web.engine.node import Node
from tests.web.engine.test_model import VARIANTS_IN_A_PRECISION, load_model, max_difference

from manyheads.decoding.candidates import best_tokens
from manyheads.decoding.engine import TorchEngine
from manyheads.decoding.greedy import greedy_search
from manyheads.decoding.language_model import DecoderOnlyStepper, held_tokens
from manyheads.decoding.prepare import pack_native
from manyheads.errors import UsageError
from manyheads.inference.batching import SPECIAL_IDS
from manyheads.inference.inspect_options import Changes
from manyheads.inference.native_engine import NativeEngine
from manyheads.inspection.changes import changed
from manyheads.inspection.isolation import _RereadingEngine
from manyheads.inspection.rereading import RereadingTextStepper
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.arrays import drawing_weights
from manyheads.search.beam_state import BeamStep, Continuations
from manyheads.search.interface import Engine, Hypothesis, SpecialIds, Stepper, never_cancelled
from manyheads.search.options import Constraints, Sampling, SearchOptions
from manyheads.tensors.capture import capture
from manyheads.views.beam_tree import BeamRecorder, BeamTree

ROWS = [random_ids(1, 2 + number % 9, TARGET_SIZE, seed=number)[0].tolist() for number in range(8)]
SEARCH = {"max_length_ratio": 1.5, "max_length_offset": 6}


def options(beam_size: int = 1, n_best: int = 1, length_penalty: float = 1.0, **others: Any) -> SearchOptions:
    return SearchOptions(
        beam_size=beam_size, n_best=n_best, length_penalty=length_penalty, batch_tokens=4096, **SEARCH, **others
    )


def page_options(chosen: SearchOptions) -> dict[str, Any]:
    """Return the options for the page; length options are in the header."""
    return {"beamSize": chosen.beam_size, "nBest": chosen.n_best, "lengthPenalty": chosen.length_penalty}


def ending_model(**variant: Any) -> EncoderDecoder:
    """Return a random model some of whose outputs end."""
    model = scrambled_model(**variant).float()
    with torch.no_grad():
        if model.output.bias is not None:
            model.output.bias[EOS] += 6
    return model


def search_natively(
    model: EncoderDecoder,
    precision: str,
    chosen: SearchOptions,
    rows: Sequence[Sequence[int]] = ROWS,
    constraints: Sequence[Constraints] = (),
) -> list[list[Hypothesis]]:
    """Return the outputs of the native engine, or of torch where it cannot be compiled."""
    native = pack_native(model, precision)  # type: ignore[arg-type]
    if native is None:
        if precision == "int8":
            pytest.skip("torch has other last bits, which may round an activation to another integer")
        return TorchEngine([model]).search(rows, chosen, constraints)
    return NativeEngine(native).search(rows, chosen, constraints)


def check_outputs(found: list[dict[str, Any]], expected: list[Hypothesis], precision: str = "fp32") -> None:
    """Compare outputs; in int8 with those of the C code on this processor, whose scores have the same bits."""
    assert [output["tokens"] for output in found] == [list(output.tokens) for output in expected]
    if precision == "int8":
        for output, hypothesis in zip(found, expected, strict=True):
            assert output["tokenScores"] == list(hypothesis.token_scores)
            assert (output["logProbability"], output["score"]) == (hypothesis.log_probability, hypothesis.score)
    for output, hypothesis in zip(found, expected, strict=True):
        assert output["ended"] == hypothesis.ended
        assert_close(output["tokenScores"], hypothesis.token_scores)
        assert output["logProbability"] == approx(hypothesis.log_probability)
        assert output["score"] == approx(hypothesis.score)


@pytest.mark.parametrize(("variant", "precision"), VARIANTS_IN_A_PRECISION, ids=str)
def test_greedy_and_beam_outputs_are_those_of_the_native_engine(node, variant, precision) -> None:
    """Beams wider than their outputs, several outputs and length penalties are included."""
    model = load_model(node, ending_model(**variant), precision, search=SEARCH)
    ended = []
    for chosen in (options(), options(5), options(5, 5), options(4, 2, 0.0), options(3, 3, 0.6)):
        outputs = search_natively(model, precision, chosen)
        found = node.call("translateAll", "model", ROWS, page_options(chosen))
        for outputs_, expected in zip(found, outputs, strict=True):
            check_outputs(outputs_, expected, precision)
            ended += [hypothesis.ended for hypothesis in expected]
    assert any(ended) or model.output.bias is None


@pytest.mark.slow
@pytest.mark.weekly
def test_1000_sentences_in_int8_have_the_bits_of_the_native_engine(node) -> None:
    model = load_model(node, ending_model(positions="rotary"), "int8", search=SEARCH)
    rows = [random_ids(1, 1 + number % 12, TARGET_SIZE, seed=number)[0].tolist() for number in range(1_000)]
    for chosen in (options(), options(5, 5, 0.6)):
        found = node.call("translateAll", "model", rows, page_options(chosen))
        for outputs, expected in zip(found, search_natively(model, "int8", chosen, rows), strict=True):
            check_outputs(outputs, expected, "int8")


@pytest.mark.parametrize("beam", [1, 3])
def test_the_best_output_has_the_cross_attention_of_each_of_its_tokens(node, beam) -> None:
    model = load_model(node, ending_model(), search=SEARCH)
    for source in ROWS:
        best, *others = node.call(
            "translate", "model", source, {**page_options(options(beam, beam)), "crossAttention": True}
        )
        inputs = [BOS, *best["tokens"]][: max(1, len(best["tokens"]))]
        expected = capture(model, torch.tensor([[*source, EOS]]), torch.tensor([inputs]))
        (cross,) = (attention.weights for attention in expected.attention if attention.kind == "cross")
        assert max_difference(best["crossAttention"], cross) < 1e-5
        assert not any("crossAttention" in other for other in others)


def outcome(search: Callable[[], Any]) -> Any:
    """Return the outputs of a search, or the number of tokens that its error names."""
    try:
        return search()
    except (AssertionError, UsageError) as error:
        return re.findall(r"an input of \d+ tokens|prefix.* has \d+ tokens", str(error))


@torch.no_grad()
@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
@pytest.mark.parametrize("beam", [1, 3])
def test_all_engines_agree_at_the_limit_of_positions(node, positions, beam) -> None:
    """Sources and outputs, also begun by a prefix, below, at and above the limit; here the end mark makes 20."""
    model = scrambled_model(positions=positions, max_positions=20).float()
    model.output.bias[EOS] -= 100
    load_model(node, model, search=SEARCH)
    engines: list[Engine] = [TorchEngine([model])]
    if (native := pack_native(model)) is not None:
        engines.append(NativeEngine(native))
    for length, prefix in [*product((1, 7, 18, 19, 20), (0,)), *product((7, 19), (18, 19, 20))]:
        source, forced = (
            random_ids(1, count, TARGET_SIZE)[0].tolist() if count else [] for count in (length, prefix)
        )
        chosen, constraints = options(beam, beam), [Constraints(tuple(forced))]
        wanted = {**page_options(chosen), "prefix": forced}
        found = outcome(lambda: node.call("translate", "model", source, wanted))  # noqa: B023
        for engine in engines:
            expected = outcome(lambda: engine.search([source], chosen, constraints)[0])  # noqa: B023
            if expected and isinstance(expected[0], Hypothesis):
                check_outputs(found, expected)
                assert prefix or length == 1 or len(found[0]["tokens"]) == min(19, int(1.5 * length) + 6)
            else:
                assert len(expected) == len(found) == 1
                assert (length if length == 20 else prefix) == 20


def test_a_beam_whose_cache_must_grow_gives_the_same_outputs(node) -> None:
    model = load_model(node, scrambled_model(positions="rotary").float())
    chosen = SearchOptions(
        beam_size=4, n_best=4, length_penalty=1.0, batch_tokens=4096, max_length_ratio=0.01, max_length_offset=35
    )
    with torch.no_grad():
        model.output.bias[EOS] -= 100
    load_model(node, model, search={"max_length_ratio": 0.01, "max_length_offset": 35})
    (expected,) = TorchEngine([model]).search(ROWS[:1], chosen)
    (found,) = node.call("translateAll", "model", ROWS[:1], page_options(chosen))
    check_outputs(found, expected)
    assert len(found[0]["tokens"]) == 35


@pytest.mark.parametrize(
    ("length", "positions", "precision"), [(1, "sinusoidal", "int8"), (3, "rotary", "fp32"), (30, "rotary", "int8")]
)
def test_outputs_with_a_forced_prefix_are_those_of_the_native_engine(node, length, positions, precision) -> None:
    """One prefix is longer than the longest output."""
    model = ending_model(positions=positions)
    load_model(node, model, precision, search=SEARCH)
    prefix = random_ids(1, length, TARGET_SIZE, seed=77)[0].tolist()
    for beam_size, n_best in ((1, 1), (4, 3)):
        chosen = options(beam_size, n_best)
        outputs = search_natively(model, precision, chosen, constraints=[Constraints(tuple(prefix))] * len(ROWS))
        found = node.call("translateAll", "model", ROWS, {**page_options(chosen), "prefix": prefix})
        for outputs_, expected in zip(found, outputs, strict=True):
            check_outputs(outputs_, expected, precision)


def build_tree(records: list[dict[str, Any]], best: list[int], beam_size: int) -> BeamTree:
    """Return the beam tree that Python builds from the records of the page."""
    recorder = BeamRecorder(beam_size=beam_size, length_penalty=1.0, eos=EOS, piece=str)
    for record in records:
        candidates = [
            [float(candidate[name]) for candidate in record["candidates"]]
            for name in ("parent", "token", "value", "total")
        ]
        parent, token = (np.array([values], dtype=np.int64) for values in candidates[:2])
        value, total = (np.array([values]) for values in candidates[2:])
        recorder.step(
            BeamStep(
                length=record["length"],
                sentences=np.array([0]),
                candidates=Continuations(parent, token, value, total),
                finished=np.array([record["finished"]]),
                kept=np.array([record["kept"]]),
                closed=np.array([record["closed"]]),
                last_token=np.array([record["lastTokens"]]),
                last_value=np.array([[float(value) for value in record["lastValues"]]]),
                active=np.array([record["active"]]),
                scores=np.array([[float(score) for score in record["scores"]]]),
            )
        )
    return recorder.tree(best)


@pytest.mark.parametrize(("prefix", "beam_size"), [((), 1), ((7, 9), 2), ((), 5)])
def test_the_recorded_steps_give_the_beam_tree_of_python(node, prefix, beam_size) -> None:
    model = load_model(node, ending_model(), search=SEARCH)
    check_trees(node, TorchEngine([model]), prefix, beam_size)


def check_trees(node: Node, engine: TorchEngine, prefix: tuple[int, ...], beam_size: int, **changes: Any) -> None:
    """Compare the outputs, and the beam trees that Python builds from the records of both searches."""
    for row in ROWS[:4]:
        chosen = options(beam_size)
        recorder = BeamRecorder(beam_size=beam_size, length_penalty=1.0, eos=EOS, piece=str)
        with engine.evaluating():
            ((expected,),) = engine.search_batch([row], chosen, [Constraints(prefix)], never_cancelled, recorder)
        found = node.call("recorded", "model", row, {**page_options(chosen), "prefix": list(prefix), **changes})
        check_outputs(found["outputs"], [expected])
        best = [*expected.tokens, *([EOS] if expected.ended else [])]
        tree, expected_tree = build_tree(found["records"], best, beam_size), recorder.tree(best)
        assert (tree.steps, tree.stop) == (expected_tree.steps, expected_tree.stop)
        for node_, other in zip(tree.nodes, expected_tree.nodes, strict=True):
            exact = ("number", "parent", "step", "id", "rank", "state", "best")
            assert [getattr(node_, name) for name in exact] == [getattr(other, name) for name in exact]
            for name in ("log_probability", "total", "score", "threshold"):
                assert getattr(node_, name) == approx(getattr(other, name)), name


@pytest.mark.parametrize("variant", [*VARIANTS.values()][:3], ids=[*VARIANTS][:3])  # one of each kind of positions
def test_outputs_without_the_causal_mask_are_those_of_the_rereading_engine(node, variant) -> None:
    """Greedy and beam outputs agree; the mask changes some of them."""
    model = load_model(node, ending_model(**variant), search=SEARCH)
    engine = _RereadingEngine(TorchEngine([model]), never_cancelled)
    with changed(engine.models[0], Changes(mask=False)):
        for chosen in (options(), options(4, 3, 0.6)):
            outputs = engine.search(ROWS, chosen)
            page_settings = {**page_options(chosen), "causal": False}
            for outputs_, expected in zip(
                node.call("translateAll", "model", ROWS, page_settings), outputs, strict=True
            ):
                check_outputs(outputs_, expected)
            assert outputs != TorchEngine([model]).search(ROWS, chosen)


@pytest.mark.parametrize(
    ("prefix", "beam_size"), [((), 1), ((7, 9), 5), ((8,) * 30, 2)], ids=["free", "prefix", "long prefix"]
)
def test_the_recorded_steps_without_the_causal_mask_give_the_beam_tree_of_python(node, prefix, beam_size) -> None:
    model = load_model(node, ending_model(positions="rotary"), search=SEARCH)
    engine = _RereadingEngine(TorchEngine([model]), never_cancelled)
    with changed(engine.models[0], Changes(mask=False)):
        check_trees(node, engine, prefix, beam_size, causal=False)


def test_a_cancelled_search_without_the_causal_mask_frees_its_memory(node) -> None:
    load_model(node, ending_model(), search=SEARCH)
    node.call("translate", "model", ROWS[5], {"causal": False})
    before = node.call("state")
    error = node.call("failing", "model", ROWS[5], {"cancelAfter": 2, "causal": False})
    assert error.startswith("SearchCancelled")
    assert node.call("state") == before


@torch.no_grad()
def test_heads_that_are_turned_off_change_the_search_as_in_torch(node) -> None:
    model = load_model(node, ending_model(), search=SEARCH)
    factors = np.ones((3, 3), dtype=np.float32)
    factors[0] = factors[2, 1] = 0
    modules = dict(enumerate(layer.cross_attention for layer in model.decoder_layers))
    source = torch.tensor([[*ROWS[5], EOS]])
    page_settings = {"beamSize": 1, "headFactors": {"cross": factors.ravel().tolist()}}
    (found,) = node.call("translate", "model", ROWS[5], page_settings)
    target = [BOS, *found["tokens"], *([EOS] if found["ended"] else [])]
    with scaled_heads(modules, factors):
        log_probs = model(source, torch.tensor([target]))[0].log_softmax(-1)
    log_probs[:, [PAD, BOS]] = -torch.inf
    written = target[1:]
    assert log_probs.argmax(-1).tolist()[: len(written)] == written
    assert_close(found["tokenScores"], log_probs[range(len(written)), written])
    (other,) = node.call("translate", "model", ROWS[5], {"beamSize": 1})
    assert abs(other["tokenScores"][0] - found["tokenScores"][0]) > 0.01


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_a_search_without_positions_is_that_of_a_model_without_positions(node, positions) -> None:
    model = load_model(node, ending_model(positions=positions), search=SEARCH)
    model.source_embedding.positions = model.target_embedding.positions = model.rotary = None
    for prefix in ([], [7, 8]):
        page_settings = {"beamSize": 1, "positions": False, "prefix": prefix}
        (found,) = node.call("translate", "model", ROWS[6], page_settings)
        target = torch.tensor([[BOS, *found["tokens"], EOS]])
        log_probs = model(torch.tensor([[*ROWS[6], EOS]]), target)[0].log_softmax(-1)
        expected = [float(log_probs[t, token]) for t, token in enumerate([*found["tokens"], EOS])]
        assert_close(found["tokenScores"], expected[: len(found["tokenScores"])])


def test_interleaved_searches_are_independent(node) -> None:
    model = load_model(node, ending_model(), search=SEARCH)
    chosen = options(3, 2)
    found = node.call("together", "model", ROWS, page_options(chosen))
    for outputs_, expected in zip(found, TorchEngine([model]).search(ROWS, chosen), strict=True):
        check_outputs(outputs_, expected)


def test_a_cancelled_search_ends_after_its_step_and_frees_its_memory(node) -> None:
    load_model(node, ending_model(), search=SEARCH)
    node.call("translate", "model", ROWS[5], {})
    before = node.call("state")
    assert node.call("failing", "model", ROWS[5], {"cancelAfter": 2}).startswith("SearchCancelled")
    assert node.call("state") == before


@pytest.mark.parametrize(
    ("ids", "page_settings", "message"),
    [
        ([5], {"beamSize": 2, "nBest": 3}, "nBest = 3 must be from 1 to beamSize = 2"),
        ([5], {"beamSize": 44}, "beamSize = 44 is too large for 47 tokens"),
        ([5], {"prefix": [6] * 41}, "the prefix has 41 tokens, but the longest output is 40"),
        ([47], {}, r"token id 47; the range is 0..46"),
        ([5], {"prefix": [99, 6]}, "token id 99; the range is 0..46"),
        ([5], {"headFactors": {"cross": [1.0, 0.0]}}, "2 factors of heads were given, but there are 9"),
        ([5] * 41, {}, "model.max_positions = 41"),
    ],
)
def test_an_invalid_search_is_refused_with_the_invalid_value(node, ids, page_settings, message) -> None:
    load_model(node, scrambled_model(positions="learned").float())
    node.call("translate", "model", [5], {"prefix": [6]})  # makes the tables of positions
    before = node.call("state")["used"]
    error = node.call("failing", "model", ids, page_settings)
    assert error.startswith("EngineError: ")
    assert message in error
    assert node.call("state")["used"] == before


def test_weights_that_give_nan_are_reported(node) -> None:
    model = scrambled_model().float()
    with torch.no_grad():
        model.output.bias[7] = 3e38
        model.decoder_norm.weight.fill_(3e38)
    load_model(node, model)
    assert "not numbers" in node.call("failing", "model", [5, 6], {})


def generate_greedily(model: Any, context: list[int], window: int, most: int) -> Hypothesis:
    return continue_greedily(DecoderOnlyStepper(model, [context], window), most)


def continue_greedily(stepper: Stepper, most: int) -> Hypothesis:
    special = SpecialIds(BOS, EOS, (UNK, PAD, BOS))
    return greedy_search(stepper, options(), torch.tensor([most]), special)[0]


@torch.no_grad()
@pytest.mark.parametrize(
    ("window", "positions", "precision"),
    [
        (4, "sinusoidal", "fp32"),
        (4, "rotary", "int8"),
        (7, "learned", "fp32"),
        (40, "sinusoidal", "int8"),
        (40, "rotary", "fp32"),
    ],
)
def test_a_language_model_generates_the_text_of_python(node, window, positions, precision) -> None:
    """Text beyond the window, whose first half is dropped, and contexts longer than the window are included."""
    model = load_model(
        node, language_model(positions=positions), precision, "language-modeling", data={"max_length": window}
    )
    for length in (1, 3, 6, 12):
        context = random_ids(1, length, TARGET_SIZE, seed=length)[0].tolist()
        found = node.call("generate", "model", context, {"maxTokens": 25})
        expected = generate_greedily(model, context, window, 25)
        assert found["tokens"] == list(expected.tokens)
        if precision == "fp32":  # in int8 the last bits of torch may round an activation to another integer
            check_outputs([found], [expected])


@torch.no_grad()
@pytest.mark.parametrize(("window", "positions"), [(4, "sinusoidal"), (7, "rotary"), (40, "learned")])
def test_a_language_model_without_its_mask_generates_the_text_of_python(node, window, positions) -> None:
    """Text beyond the window is included; the mask changes some texts."""
    model = language_model(positions=positions, tied_embeddings="none")
    load_model(node, model, task="language-modeling", data={"max_length": window})
    texts = []
    for length in (1, 3, 6, 12):
        context = random_ids(1, length, TARGET_SIZE, seed=length)[0].tolist()
        found = node.call("generate", "model", context, {"maxTokens": 25, "causal": False})
        with changed(model, Changes(mask=False)):
            expected = continue_greedily(RereadingTextStepper(model, [context], window), 25)
        check_outputs([found], [expected])
        texts.append((expected.tokens, generate_greedily(model, context, window, 25).tokens))
    assert any(unmasked != masked for unmasked, masked in texts)


def test_the_kept_tokens_of_a_window_are_those_of_python(node) -> None:
    for window in (1, 2, 5, 8):
        lengths = list(range(1, 40))
        assert node.call("held", lengths, window) == [held_tokens(length, window) for length in lengths]


def test_a_sampled_text_depends_on_seed_sample_and_context_alone(node) -> None:
    load_model(node, language_model(), task="language-modeling", data={"max_length": 16})
    sampling = {"temperature": 1.5, "topK": 20, "topP": 0.95, "seed": 3}
    wanted = {"sampling": sampling, "maxTokens": 30}

    def write(context: list[int], **changes: Any) -> list[int]:
        return node.call("generate", "model", context, {**wanted, **changes})["tokens"]

    first = write([5, 6])
    assert write([5, 6]) == first
    others = [write([5, 7]), write([5, 6], sample=1), write([5, 6], sampling={**sampling, "seed": 4})]
    assert all(other != first for other in others)


def test_generation_may_be_ended_after_any_token(node) -> None:
    load_model(node, language_model(), task="language-modeling")
    found = node.call("generateUntil", "model", [5, 6], {"maxTokens": 30}, 4)
    assert (len(found["tokens"]), found["ended"]) == (4, False)
    assert found["tokens"] == node.call("generate", "model", [5, 6], {"maxTokens": 30})["tokens"][:4]


@pytest.mark.parametrize(
    "sampling", [Sampling(0.7), Sampling(1.3, top_k=5), Sampling(1.0, top_p=0.6), Sampling(2.0, 9, 0.8)]
)
def test_the_weights_of_a_draw_are_those_of_python(node, sampling) -> None:
    values = torch.randn(31, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    values[[4, 9]] = float(values[20])  # ties, of which the lower id comes first
    options_ = {"temperature": sampling.temperature, "topK": sampling.top_k, "topP": sampling.top_p}
    found = node.call("weights", values.tolist(), options_, [])
    expected = torch.from_numpy(drawing_weights(values.double()[None].numpy(), sampling)[0])
    assert_close(found, expected, dtype=torch.float64)


def test_random_numbers_are_uniform_and_tokens_are_drawn_by_their_probabilities(node) -> None:
    numbers = np.array(node.call("random", 1, 0, [5, 6], 20_000))
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert np.histogram(numbers, 20, (0, 1))[0].std() < 3 * math.sqrt(1_000)
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.03
    probabilities = [0.5, 0.25, 0.15, 0.1]
    drawn = node.call("pick", [*np.log(probabilities), -1.0], {"temperature": 1}, 1, 20_000, [4])
    counts = np.bincount(drawn, minlength=5)
    assert counts[4] == 0
    assert counts[:4] / 20_000 == within(np.array(probabilities), 0.015)


def test_the_best_tokens_are_those_of_python(node) -> None:
    logits = torch.randint(-4, 5, (200,), generator=torch.Generator().manual_seed(2)).float() / 2
    values, ids = best_tokens(logits.log_softmax(-1)[None], 12, SPECIAL_IDS.suppressed)
    load_model(node, scrambled_model().float())
    found = node.call("best", "model", logits.tolist(), 12, list(SPECIAL_IDS.suppressed))
    assert [token for token, _ in found] == ids[0].tolist()
    assert_close([value for _, value in found], values[0])
