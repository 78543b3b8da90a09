"""The C code: the log-probabilities of teacher forcing after any selection, and the same bits in any batch."""

from __future__ import annotations

import copy
import gc
import os
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.decoding.test_stepper import HISTORIES, padded_source
from tests.model.samples import (
    BOS,
    PAD,
    SOURCE_SIZE,
    TARGET_SIZE,
    VARIANTS,
    make_config,
    random_ids,
    scrambled_model,
)
from tests.tolerances import assert_close
from torch import nn

from manyheads.decoding import model as inference_model
from manyheads.decoding.linear import round_weight
from manyheads.decoding.model import InferenceModel, StepInput
from manyheads.decoding.native.build import library
from manyheads.decoding.native.model import _ENCODER_BATCH_TOKENS
from manyheads.decoding.native.weights import Precision
from manyheads.decoding.prepare import pack
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.candidates import best_tokens

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler here")

HISTORY = HISTORIES["a beam that stays in place, then sentences change places"]


def check_history(packed_model: InferenceModel, model: EncoderDecoder, history) -> None:
    """Step through a history and compare every row with teacher forcing in the model at every step."""
    source = padded_source(model)
    stepper = EncoderDecoderStepper(packed_model, source)
    sentences, prefixes = torch.arange(3), torch.empty(3, 0, dtype=torch.int64)
    for number, rows in enumerate([*history, None]):
        latest = random_ids(1, len(sentences), TARGET_SIZE, seed=100 + number)[0]
        prefixes = torch.cat([prefixes, latest[:, None]], 1)
        right = model(source[sentences], prefixes)[:, -1].log_softmax(-1)
        assert_close(stepper.step(latest), right)
        if rows is not None:
            stepper.select(torch.tensor(rows))
            sentences, prefixes = sentences[rows], prefixes[rows]


def packed_and_reference(precision: Precision = "fp32", **changes: object) -> tuple[InferenceModel, EncoderDecoder]:
    """Return a model packed for the C code, and the model itself."""
    model = scrambled_model(**changes).float()
    packed = pack(model, precision)
    assert packed.native is not None
    return packed, model


@torch.no_grad()
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES.keys())
def test_after_any_selection_steps_give_the_teacher_forced_probabilities(history, threads) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        check_history(*packed_and_reference(positions="rotary"), history)
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
@pytest.mark.parametrize("variant", [
    *VARIANTS.values(),
    {"activation": "gelu-tanh"},
    {"activation": "swish", "d_ff": 48},
    {"d_model": 64, "num_heads": 4, "d_ff": 96},
    {"positions": "learned", "token_types": 2, "embedding_norm": True},
], ids=str)  # fmt: skip
def test_every_variant_gives_the_teacher_forced_probabilities(variant) -> None:
    check_history(*packed_and_reference(**variant), HISTORY)


def with_rounded_weights(model: EncoderDecoder, precision: Precision) -> EncoderDecoder:
    """Return a copy of a model with rounded weights of linear layers, and of token embeddings for int8."""
    other = copy.deepcopy(model)
    for name, module in other.named_modules():
        embedding = precision == "int8" and name.endswith("embedding.tokens")
        if (isinstance(module, nn.Linear) or embedding) and precision != "fp32":
            module.weight = nn.Parameter(round_weight(module.weight.detach(), precision))
    return other


@torch.no_grad()
@pytest.mark.parametrize("precision", ["bf16", "int8"])
@pytest.mark.parametrize("changes", [{}, {"d_model": 64, "num_heads": 2, "d_ff": 96}], ids=["odd", "even"])
def test_rounded_weights_are_those_of_a_model_with_rounded_weights(precision, changes) -> None:
    packed, model = packed_and_reference(precision, **changes)
    source = random_ids(1, 7, TARGET_SIZE)  # encoded by the C code too
    target = random_ids(1, 5, TARGET_SIZE)
    stepper = EncoderDecoderStepper(packed, source)
    found = torch.stack([stepper.step(tokens) for tokens in target.unbind(1)], 1)
    right = with_rounded_weights(model, precision)(source, target).log_softmax(-1)
    assert_close(found, right)
    assert float((found - model(source, target).log_softmax(-1)).abs().max()) > 1e-3, "the weights are rounded"


@torch.no_grad()
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize(
    "variant", [{}, {"positions": "rotary", "d_model": 80, "num_heads": 2, "d_ff": 88}], ids=str
)
def test_a_row_gets_the_same_bits_in_any_batch(variant, precision) -> None:
    """Compare batches of one row, of five, and of more rows than the encoder processes in one call."""
    packed, _ = packed_and_reference(precision, **variant)
    lengths = [7, 1, 12, *(3 + number % 9 for number in range(60))]
    assert sum(lengths) > _ENCODER_BATCH_TOKENS
    sources = [random_ids(1, length, TARGET_SIZE, seed=length) for length in lengths]
    target = random_ids(1, 4, TARGET_SIZE)[0]

    def log_probs_of(which: list[int]) -> torch.Tensor:
        longest = max(lengths[number] for number in which)
        rows = [nn.functional.pad(sources[number], (0, longest - lengths[number]), value=PAD) for number in which]
        stepper = EncoderDecoderStepper(packed, torch.cat(rows))
        return torch.stack([stepper.step(token.expand(len(which))) for token in target], 1)

    every = log_probs_of(list(range(len(lengths))))
    for number in (0, 1, 2, 40):
        assert torch.equal(log_probs_of([number])[0], every[number])
    assert torch.equal(log_probs_of([2, 40, 0, 1, 5]), every[[2, 40, 0, 1, 5]])


@torch.no_grad()
def test_steps_beyond_the_first_capacity_of_the_cache_give_the_teacher_forced_probabilities() -> None:
    check_history(*packed_and_reference(), [[0, 0, 1, 1, 2, 2], *[[1, 0, 3, 2, 5, 4]] * 20])


@torch.no_grad()
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("variant", [
    *VARIANTS.values(),
    {"activation": "swish", "d_model": 64, "num_heads": 4, "d_ff": 96},
    {"positions": "learned", "token_types": 2, "embedding_norm": True},
], ids=str)  # fmt: skip
def test_the_encoder_computes_the_memory_of_the_model(variant, precision, monkeypatch) -> None:
    """Include lengths beyond the first table of positions, at the limit of the C code, and above it."""
    packed, model = packed_and_reference(precision, max_positions=141, **variant)
    model = with_rounded_weights(model, precision)
    counted = []
    encode = packed.native.encode
    monkeypatch.setattr(
        packed.native,
        "encode",
        lambda tokens, lengths: counted.append((len(lengths), lengths.max())) or encode(tokens, lengths),
    )
    monkeypatch.setattr(inference_model, "MAX_SOURCE_LENGTH", 70)
    for shape in ((1, 1), (5, 7), (4, 70), *([(2, 71)] if precision == "fp32" else [])):
        source = random_ids(*shape, TARGET_SIZE)
        found, bias = packed.encode(source)
        assert bias is None
        memory, _ = model.encode(source)
        for layer, pair in zip(model.decoder_layers, found, strict=True):
            for one, right in zip(pair, layer.keys_values(memory), strict=True):
                assert_close(one, right)
    assert counted == [(1, 1), (5, 7), (4, 70)]


@torch.no_grad()
def test_padding_is_left_out_at_the_beginning_and_at_the_end() -> None:
    packed, model = packed_and_reference()
    source = random_ids(3, 9, TARGET_SIZE)
    source[0, 5:] = source[1, :3] = PAD
    found, bias = packed.encode(source)
    assert bias.flatten(1).isinf().sum(1).tolist() == [4, 3, 0]
    right = model.decoder_layers[0].keys_values(model.encode(source)[0])
    assert_close(found[0][0][0, :, :5], right[0][0, :, :5])
    assert_close(found[0][1][1, :, :6], right[1][1, :, 3:])
    assert_close(found[0][1][2], right[1][2])


@torch.no_grad()
def test_the_memory_behind_a_sentence_is_never_read(monkeypatch) -> None:
    packed, model = packed_and_reference(positions="rotary")
    source, token = padded_source(model), torch.tensor([BOS] * 3)
    empty = np.empty
    monkeypatch.setattr(np, "empty", lambda shape, dtype: np.full(shape, np.nan, dtype))  # memory not yet written
    stepper = EncoderDecoderStepper(packed, source)
    monkeypatch.setattr(np, "empty", empty)
    assert any(part.isnan().any() for pair in stepper.memory for part in pair)
    found = stepper.step(token)
    assert_close(found, model(source, token[:, None])[:, 0].log_softmax(-1))


@torch.no_grad()
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu-tanh", "swish", "swiglu"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
def test_activations_are_those_of_torch_for_small_and_for_large_numbers(activation, size) -> None:
    model = scrambled_model(activation=activation).float()
    for layer in (*model.encoder_layers, *model.decoder_layers):
        layer.feed_forward.expand.weight.mul_(size)
    packed = pack(model)
    source, target = random_ids(1, 5, TARGET_SIZE), random_ids(1, 3, TARGET_SIZE)
    stepper = EncoderDecoderStepper(packed, source)
    found = torch.stack([stepper.step(tokens) for tokens in target.unbind(1)], 1)
    right = model.double()(source, target).log_softmax(-1).float()
    assert_close(found, right)


@torch.no_grad()
@pytest.mark.parametrize("parameter", ["encoder_layers.0.feed_forward.expand.weight", "output.bias"])
def test_nan_in_the_weights_reaches_the_logits(parameter) -> None:
    model = scrambled_model().float()
    model.get_parameter(parameter)[0] = torch.nan
    logits = EncoderDecoderStepper(pack(model), random_ids(1, 5, TARGET_SIZE)).step(torch.tensor([BOS]))
    assert bool(logits.isnan().any())


@torch.no_grad()
def test_a_source_of_one_token_and_padding_attends_to_the_token_alone() -> None:
    packed, model = packed_and_reference()
    source = torch.full((2, 5), PAD)
    source[0, 0], source[1] = 7, 11
    target = random_ids(2, 3, TARGET_SIZE)
    stepper = EncoderDecoderStepper(packed, source)
    found = torch.stack([stepper.step(tokens) for tokens in target.unbind(1)], 1)
    assert_close(found, model(source, target).log_softmax(-1))


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_the_positions_of_a_step_stay_in_memory_while_it_runs(positions, monkeypatch) -> None:
    """Another thread may replace the table by a longer one meanwhile."""
    packed, _ = packed_and_reference(positions=positions, token_types=0)
    native = packed.native
    assert native is not None
    stepper = EncoderDecoderStepper(packed, random_ids(1, 5, TARGET_SIZE))
    table = weakref.ref(native.target_positions.table)
    alive = []

    def decoder_steps(*arguments: object) -> int:
        native.target_positions.first(10_000)
        gc.collect()
        alive.append(table() is not None)
        return 0

    workspace_size = native.library.workspace_size
    monkeypatch.setattr(
        native, "library", SimpleNamespace(decoder_steps=decoder_steps, workspace_size=workspace_size)
    )
    stepper.step(torch.tensor([5]))
    gc.collect()
    assert (alive, table()) == ([True], None)


@torch.no_grad()
def test_threads_that_step_at_the_same_time_are_independent() -> None:
    """Step in three threads, of which one has the thread pool; each thread has its own KV cache."""
    packed, model = packed_and_reference(positions="rotary")
    targets = [random_ids(1, 30, TARGET_SIZE, seed=seed) for seed in range(3)]
    sources = [random_ids(1, 5 + seed, TARGET_SIZE, seed=seed) for seed in range(3)]

    def log_probs_of(number: int) -> torch.Tensor:
        torch.set_num_threads(2)
        with torch.no_grad():
            stepper = EncoderDecoderStepper(packed, sources[number])
            return torch.stack([stepper.step(tokens) for tokens in targets[number].unbind(1)], 1)

    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(log_probs_of, range(3)))
    finally:
        torch.set_num_threads(before)
    for source, target, one in zip(sources, targets, found, strict=True):
        assert_close(one, model(source, target).log_softmax(-1))


@torch.no_grad()
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("positions", ["rotary", "sinusoidal"])
def test_batched_steppers_at_different_positions_equal_separate_steppers(positions, threads) -> None:
    """Batch three steppers of different lengths, beam sizes and first steps; one has dropped a sentence."""
    packed, model = packed_and_reference(positions=positions)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        sources = [padded_source(model), random_ids(1, 11, TARGET_SIZE), random_ids(2, 5, TARGET_SIZE)]
        batched, separate = ([EncoderDecoderStepper(packed, one) for one in sources] for _ in range(2))
        first_step = [0, 2, 5]
        choices = [{3: [0, 0, 0, 1, 1, 1], 6: [3, 4, 5, 0, 2, 1], 8: [1, 1, 2]}, {4: [0] * 5}, {7: [1, 1, 0, 0]}]
        rows = [one.size(0) for one in sources]
        for time in range(10):
            active = [number for number in range(3) if first_step[number] <= time]
            tokens = [random_ids(1, rows[number], TARGET_SIZE, seed=10 * time + number)[0] for number in active]
            steps = [batched[number].step_input(latest) for number, latest in zip(active, tokens, strict=True)]
            for number, one, latest in zip(active, packed.steps(steps), tokens, strict=True):
                assert_close(one.log_softmax(-1), separate[number].step(latest))
                if chosen := choices[number].get(time):
                    rows[number] = len(chosen)
                    for stepper in (batched[number], separate[number]):
                        stepper.select(torch.tensor(chosen))
        assert [stepper.position for stepper in batched] == [10, 8, 5]
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
@pytest.mark.parametrize("size", [17, 64, 83, 1_000])
@pytest.mark.parametrize("spread", [0.0, 1.0, 90.0])
def test_the_best_tokens_are_those_of_a_softmax_with_ties_in_order_of_their_ids(size, spread) -> None:
    """Use biases as logits, with many ties, also at the edges of SIMD vectors, and some far below the others."""
    model = EncoderDecoder(make_config(tied_embeddings="none"), SOURCE_SIZE, size).eval()
    generator = torch.Generator().manual_seed(size)
    bias = torch.randint(-8, 9, (size,), generator=generator) / 8 + spread * torch.rand(size, generator=generator)
    bias[[0, size - 1, size // 2]] = float(bias.max()) + 0.5
    model.output.weight.zero_()
    model.output.bias.copy_(bias)
    packed = pack(model)
    stepper = EncoderDecoderStepper(packed, random_ids(3, 5, TARGET_SIZE))
    never, tokens = (0, 3), torch.tensor([BOS, 5, 6])
    found = packed.best([stepper.step_input(tokens)], 6, never)
    assert found is not None
    values, ids = best_tokens(bias.log_softmax(0).expand(3, -1), 6, never)
    assert found[1].tolist() == ids.tolist()
    assert_close(found[0], values)


@torch.no_grad()
def test_the_best_tokens_are_computed_for_the_remaining_sentences_only() -> None:
    """Keep the rows of the other sentences at their indices when a sentence is dropped."""
    packed, _ = packed_and_reference()
    batched = [EncoderDecoderStepper(packed, random_ids(12, 5, TARGET_SIZE, seed=seed)) for seed in (1, 2)]
    separate = [EncoderDecoderStepper(packed, random_ids(12, 5, TARGET_SIZE, seed=seed)) for seed in (1, 2)]
    first = random_ids(1, 12, TARGET_SIZE)[0]
    kept = torch.tensor([0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11])
    for stepper in (*batched, *separate):
        stepper.step(first)
    for stepper in (batched[0], separate[0]):
        stepper.select(kept)
    assert batched[0].live is not None
    tokens = [first[kept], first]
    found = packed.best([one.step_input(latest) for one, latest in zip(batched, tokens, strict=True)], 3, ())
    assert found is not None
    right = torch.cat([one.step(latest) for one, latest in zip(separate, tokens, strict=True)])
    values, ids = best_tokens(right, 3, ())
    assert found[1].tolist() == ids.tolist()
    assert_close(found[0], values)


@torch.no_grad()
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork_the_child_has_its_own_thread_pool() -> None:
    packed, _ = packed_and_reference()
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        source, token = random_ids(1, 7, TARGET_SIZE), torch.tensor([BOS])
        right = EncoderDecoderStepper(packed, source).step(token)
        child = os.fork()
        if child == 0:
            memory, _ = packed.encode(source)
            (logits,) = packed.steps([StepInput(token, 0, packed.new_cache(1), memory, None, None)])
            os._exit(0 if bool((logits.log_softmax(-1) == right).all()) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert bool((EncoderDecoderStepper(packed, source).step(token) == right).all())
    finally:
        torch.set_num_threads(before)
