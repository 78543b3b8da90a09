"""The C code: token scores are the log-probabilities of teacher forcing, with the same bits in any batch."""

from __future__ import annotations

import copy
import gc
import os
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import numpy as np
import pytest
import torch
from tests.model.rounded import rounded_model
from tests.model.samples import SOURCE_SIZE, TARGET_SIZE, VARIANTS, make_config, random_ids, scrambled_model
from tests.tolerances import approx, assert_close, in_int8
from torch import nn

from manyheads.config.schema import ModelConfig
from manyheads.decoding.candidates import best_tokens
from manyheads.decoding.prepare import pack_native
from manyheads.errors import OverflowedError
from manyheads.inference.batching import finish
from manyheads.inference.native.beams import NativeBeams
from manyheads.inference.native.build import library
from manyheads.inference.native.model import _ENCODER_BATCH_TOKENS, NativeModel
from manyheads.inference.native.structs import Linear
from manyheads.inference.native.weights import PackedWeights, Precision
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.interface import Hypothesis, never_cancelled
from manyheads.search.options import Constraints, Sampling, SearchOptions
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import BOS, EOS, PAD

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler here")

BEAM = SearchOptions(beam_size=4, n_best=4, length_penalty=1.0, max_length_ratio=1.0, max_length_offset=6)
SAMPLING = SearchOptions(
    n_best=3, length_penalty=1.0, max_length_ratio=2.0, max_length_offset=6, sampling=Sampling(temperature=3.0)
)
ROWS = [random_ids(1, length, TARGET_SIZE, seed=length)[0].tolist() for length in (7, 1, 12, 3)]
Outputs = list[list[Hypothesis]]
# Each variant in one precision, each kind of positions and of activation in two.
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "int8", "bf16", "fp32", "int8")
VARIANTS_IN_A_PRECISION = [*zip(VARIANTS.values(), PRECISIONS, strict=True)]


def packed(model: nn.Module, precision: Precision = "fp32") -> NativeModel:
    """Return a model packed for the C code."""
    native = pack_native(model, precision)
    assert native is not None
    return native


def native_and_reference(precision: Precision = "fp32", **changes: object) -> tuple[NativeModel, EncoderDecoder]:
    """Return a model packed for the C code, and the model itself."""
    model = scrambled_model(**changes).float()
    return packed(model, precision), model


def search(
    native: NativeModel,
    options: SearchOptions,
    rows: Sequence[Sequence[int]] = ROWS,
    constraints: Sequence[Constraints] = (),
) -> Outputs:
    return finish(NativeBeams(native, options), rows, never_cancelled, constraints)


@torch.no_grad()
def teacher_forced(model: EncoderDecoder, row: Sequence[int], output: Hypothesis) -> list[float]:
    """Return the log-probability that the model gives each token of an output, one row at a time."""
    tokens = [*output.tokens, EOS][: len(output.token_scores)]
    log_probs = model(torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *tokens][: len(tokens)]]))[0].log_softmax(-1)
    return log_probs[range(len(tokens)), tokens].tolist()


def check_scores(
    native: NativeModel, model: EncoderDecoder, rows: Sequence[Sequence[int]] = ROWS, constraints: Sequence = ()
) -> None:
    """Compare the token scores of a beam, which reorders its rows, and of samples, with teacher forcing."""
    for options in (BEAM, SAMPLING):
        for row, outputs in zip(rows, search(native, options, rows, constraints), strict=True):
            for output in outputs:
                right = teacher_forced(model, row, output)
                assert output.token_scores == (in_int8(right) if native.precision == "int8" else approx(right))


@pytest.mark.parametrize("variant", [
    *VARIANTS.values(),
    {"activation": "gelu-tanh"},
    {"activation": "swish", "d_ff": 48},
    {"d_model": 64, "num_heads": 4, "d_ff": 96},
    {"positions": "learned", "token_types": 2, "embedding_norm": True},
], ids=str)  # fmt: skip
def test_every_variant_gives_the_teacher_forced_probabilities(variant) -> None:
    check_scores(*native_and_reference(**variant))


def rounded(model: EncoderDecoder, precision: Precision) -> EncoderDecoder:
    """Return a copy of a model with the weights of linear layers in bf16, or computing them in int8."""
    if precision == "int8":
        return rounded_model(model)
    if precision == "fp32":
        return model
    other = copy.deepcopy(model)
    for module in other.modules():
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(module.weight.detach().bfloat16().float())
    return other


@pytest.mark.parametrize("precision", ["bf16", "int8"])
@pytest.mark.parametrize("changes", [{}, {"d_model": 64, "num_heads": 2, "d_ff": 96}], ids=["odd", "even"])
def test_rounded_weights_are_those_of_a_model_with_rounded_weights(precision, changes) -> None:
    native, model = native_and_reference(precision, **changes)
    check_scores(native, rounded(model, precision))
    found = search(native, BEAM)[0][0]
    assert found.token_scores != approx(teacher_forced(model, ROWS[0], found)), "the weights are rounded"


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize(
    "variant", [{}, {"positions": "rotary", "d_model": 80, "num_heads": 2, "d_ff": 88}], ids=str
)
def test_a_row_gets_the_same_bits_in_any_batch_and_with_any_number_of_threads(variant, precision) -> None:
    """Compare batches of one row, of five, and of more rows than the encoder processes in one call."""
    native, _ = native_and_reference(precision, **variant)
    lengths = [7, 1, 12, *(3 + number % 9 for number in range(60))]
    assert sum(lengths) > _ENCODER_BATCH_TOKENS
    rows = [random_ids(1, length, TARGET_SIZE, seed=length)[0].tolist() for length in lengths]
    threads = torch.get_num_threads()
    for options in (BEAM, SAMPLING):
        every = search(native, options, rows)
        try:
            for count, which in ((1, [0]), (2, [40]), (3, [2, 40, 0, 1, 5])):
                torch.set_num_threads(count)
                assert search(native, options, [rows[number] for number in which]) == [every[i] for i in which]
        finally:
            torch.set_num_threads(threads)


def test_steps_beyond_the_first_capacity_of_the_cache_give_the_teacher_forced_probabilities() -> None:
    native, model = native_and_reference()
    check_scores(native, model, [ROWS[1]], [Constraints(tuple(random_ids(1, 60, TARGET_SIZE)[0].tolist()))])


@torch.no_grad()
@pytest.mark.parametrize(("variant", "precision"), [
    *VARIANTS_IN_A_PRECISION,
    ({"activation": "swish", "d_model": 64, "num_heads": 4, "d_ff": 96}, "int8"),
    ({"positions": "learned", "token_types": 2, "embedding_norm": True}, "bf16"),
], ids=str)  # fmt: skip
def test_the_encoder_computes_the_memory_of_the_model(variant, precision) -> None:
    """Include lengths beyond the first table of positions; what follows a shorter sentence is not compared."""
    native, model = native_and_reference(precision, max_positions=141, **variant)
    model = rounded(model, precision)
    for lengths in ([7, 5, 7], [70, 1, 139]):
        rows = [random_ids(1, length, TARGET_SIZE, seed=length)[0].tolist() for length in lengths]
        memory, found = model.encode(pad_rows(rows, PAD))[0], iter(native.read(rows))
        for layer in model.decoder_layers:
            for right, sentences in zip(layer.keys_values(memory), found, strict=False):
                for number, length in enumerate(lengths):
                    sentence = torch.from_numpy(sentences[number, :, :length])
                    if precision == "int8":
                        assert sentence.numpy() == in_int8(right[number, :, :length].numpy())
                    else:
                        assert_close(sentence, right[number, :, :length])


def test_the_memory_behind_a_sentence_is_never_read(monkeypatch) -> None:
    native, model = native_and_reference(positions="rotary")
    empty = np.empty

    def unwritten(shape: object, dtype: object) -> np.ndarray:
        return np.full(shape, np.nan, dtype) if dtype == np.float32 else empty(shape, dtype)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "empty", unwritten)
    assert any(np.isnan(part).any() for part in native.read(ROWS))
    check_scores(native, model)


@torch.no_grad()
@pytest.mark.parametrize("activation", get_args(ModelConfig.model_fields["activation"].annotation))
@pytest.mark.parametrize("size", [1e-3, 30.0])  # 1.0: the variants above
def test_activations_are_those_of_torch_for_small_and_for_large_numbers(activation, size) -> None:
    model = scrambled_model(activation=activation).float()
    for layer in (*model.encoder_layers, *model.decoder_layers):
        layer.feed_forward.expand.weight.mul_(size)
    native = packed(model)
    check_scores(native, model.double())


@torch.no_grad()
@pytest.mark.parametrize("parameter", ["encoder_layers.0.feed_forward.expand.weight", "output.bias"])
@pytest.mark.parametrize("options", [BEAM, SAMPLING], ids=["beam", "sampling"])
def test_nan_in_the_weights_is_an_error(parameter, options) -> None:
    model = scrambled_model().float()
    model.get_parameter(parameter)[0] = torch.nan
    native = packed(model)
    with pytest.raises(OverflowedError):
        search(native, options)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_the_positions_of_a_search_stay_in_memory_while_it_runs(positions) -> None:
    """Another thread may replace the table by a longer one meanwhile."""
    native, _ = native_and_reference(positions=positions, token_types=0)
    table, beams = weakref.ref(native.target_positions.table), NativeBeams(native, BEAM)
    beams.add(ROWS, never_cancelled, lambda index, outputs: None)
    native.target_positions.first(10_000)
    gc.collect()
    assert table() is not None
    while beams.batches:
        beams.step()
    del beams
    gc.collect()
    assert table() is None


def test_searches_in_several_threads_are_independent() -> None:
    """Search in three threads, of which one has the thread pool."""
    native, _ = native_and_reference(positions="rotary")
    right = search(native, BEAM)

    def outputs_of(_: int) -> Outputs:
        torch.set_num_threads(2)
        return search(native, BEAM)

    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(outputs_of, range(3))) == [right] * 3
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
    bias[EOS] = -1e4  # no output ends: all are cut after their first token
    model.output.weight.zero_()
    model.output.bias.copy_(bias)
    native = packed(model)
    options = SearchOptions(beam_size=6, n_best=6, length_penalty=1.0, max_length_ratio=0.0, max_length_offset=1)
    values, ids = best_tokens(bias.log_softmax(0)[None], 6, (PAD, BOS))
    for outputs in search(native, options):
        assert [output.tokens for output in outputs] == [(token,) for token in ids[0].tolist()]
        assert [output.score for output in outputs] == approx(values[0].tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork_the_child_has_its_own_thread_pool() -> None:
    native, _ = native_and_reference()
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        right = search(native, BEAM)
        child = os.fork()
        if child == 0:
            os._exit(0 if search(native, BEAM) == right else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert search(native, BEAM) == right
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("precision", "shared"), [("fp32", True), ("int8", True), ("bf16", False)])
@pytest.mark.parametrize("tied", ["all", "decoder", "none"])
def test_a_tied_embedding_is_read_from_the_output_layer_with_the_bits_of_a_copy(
    precision: Precision, shared: bool, tied: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    native, model = native_and_reference(precision, tied_embeddings=tied)
    assert (native.encoder.embedding is None) == (shared and tied == "all")
    assert (native.decoder.embedding is None) == (shared and tied != "none")
    pack = PackedWeights.embedding
    monkeypatch.setattr(PackedWeights, "embedding", lambda *arguments: pack(*arguments[:3], Linear()))
    copied = packed(copy.deepcopy(model), precision)
    assert copied.encoder.embedding
    assert copied.decoder.embedding
    for found, expected in zip(native.read(ROWS), copied.read(ROWS), strict=True):
        for row, ids in enumerate(ROWS):  # values behind the end of a sentence are undefined
            assert np.array_equal(found[row, :, : len(ids)], expected[row, :, : len(ids)])
    assert search(native, BEAM) == search(copied, BEAM)
