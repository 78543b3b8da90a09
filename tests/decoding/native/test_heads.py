"""The functions of the C code that the web page needs beside decoding, compared with the model in torch.

They compute attention weights, queries, keys and values of heads, heads switched off, whole targets in one call,
the output of the encoder, and models without cross-attention.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from tests.model.samples import (
    BOS,
    EOS,
    SOURCE_SIZE,
    TARGET_SIZE,
    VARIANTS,
    make_config,
    random_ids,
    scramble,
    scrambled_model,
)
from tests.tolerances import assert_close
from torch import nn

from manyheads.decoding.native.build import library
from manyheads.decoding.native.model import pointers
from manyheads.decoding.native.structs import EncoderInput, Failure, Heads, Linear, Model, Step
from manyheads.decoding.native.weights import _FORMATS, PackedWeights, Precision, quantize_int8
from manyheads.inspection.capture import watch_continuation, watch_head, watch_pair, watch_text
from manyheads.model import decoder_only, encoder_decoder
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import TextClassifier
from manyheads.tasks.inspecting.changes import Changes, changed

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler here")

BERT = {
    "norm": "post", "positions": "learned", "activation": "gelu", "token_types": 2, "embedding_norm": True,
    "scale_embeddings": False, "norm_epsilon": 1e-12, "pooling": "cls",
}  # fmt: skip


def empty(*shape: int) -> np.ndarray:
    """Return an array of NaN, in which an element that is not written is noticed."""
    return np.full(shape, np.nan, dtype=np.float32)


@dataclass
class Encoded:
    """The arrays that the encoder writes.

    These are the keys and values of each decoder layer, the attention weights, the queries, keys and values of the
    encoder (L, R, 3, H, E), and its output.
    """

    memory: list[np.ndarray]
    weights: np.ndarray
    vectors: np.ndarray
    output: np.ndarray


class Code:
    """The C code with the weights of a model of any kind."""

    def __init__(self, model: Any, precision: Precision = "fp32", threads: int = 1) -> None:
        code = library()
        assert code is not None
        self.code, self.threads, self.config = code, threads, model.config
        tensors = {name: weight.detach().numpy() for name, weight in model.named_parameters(remove_duplicate=False)}
        if isinstance(model, DecoderOnly) and model.output.bias is not None:
            tensors["output.bias"] = model.output.bias.numpy()
        self.weights = PackedWeights(tensors, model.config, precision, code.panel_width())
        self.encoder: Model | None = None
        self.decoder: Model | None = None
        self.memory_kv: Any = None
        if isinstance(model, DecoderOnly):
            self.decoder = self.weights.language_model(model.output.out_features)
            self.target_positions = self.weights.positions("embedding")
        elif isinstance(model, TextClassifier):
            self.encoder = self.weights.encoder(model.embedding.tokens.num_embeddings, "embedding")
            self.source_positions = self.weights.positions("embedding")
        else:
            self.encoder = self.weights.encoder(model.source_embedding.tokens.num_embeddings)
            self.decoder = self.weights.decoder(model.output.out_features)
            self.memory_kv = self.weights.memory_keys_values()
            self.source_positions = self.weights.positions("source_embedding")
            self.target_positions = self.weights.positions("target_embedding")

    def workspace(self, model: Model, rows: int, keys: int) -> np.ndarray:
        return np.empty(self.code.workspace_size(model, rows, keys, self.threads), dtype=np.float32)

    def encode(self, rows: Sequence[Sequence[int]], factors: np.ndarray | None = None) -> Encoded:
        """Encode several texts in one call: weights (L, R, H, S)."""
        assert self.encoder is not None
        config, lengths = self.config, [*map(len, rows)]
        count, longest, total = len(rows), max(lengths), sum(lengths)
        tokens = np.array([token for row in rows for token in row], dtype=np.int64)
        sentence_ids = np.repeat(np.arange(count), lengths)
        positions = np.concatenate([np.arange(length) for length in lengths])
        starts = np.cumsum([0, *lengths])
        weights = empty(self.encoder.num_layers, total, config.num_heads, longest)
        output = empty(total, config.d_model)
        layers = 0 if self.memory_kv is None else len(self.memory_kv)
        head_dim = config.d_model // config.num_heads
        vectors = empty(self.encoder.num_layers, total, 3, config.num_heads, head_dim)
        memory = [empty(count, config.num_heads, longest, head_dim) for _ in range(2 * layers)]
        table = self.source_positions.first(longest)
        source = EncoderInput(
            tokens=tokens.ctypes.data,
            sentence_ids=sentence_ids.ctypes.data,
            positions=positions.ctypes.data,
            starts=starts.ctypes.data,
            position_signals=None if table.signals is None else table.signals.ctypes.data,
            rotary=None if table.rotary_cos_sin is None else table.rotary_cos_sin.ctypes.data,
            sentences=count,
            max_length=longest,
            heads=heads_struct(weights, factors, vectors),
            output=output.ctypes.data,
        )
        workspace = self.workspace(self.encoder, total, longest)
        addresses = pointers([one.ctypes.data for one in memory])
        done = self.code.encode(
            self.encoder, self.memory_kv, layers, source, addresses, workspace.ctypes.data, self.threads, Failure()
        )
        assert done == 0
        return Encoded(memory, weights, vectors, output)

    def read(
        self,
        target: Sequence[int],
        memory: Sequence[np.ndarray] = (),
        *,
        causal: bool = True,
        observed: bool = True,
        self_factors: np.ndarray | None = None,
        cross_factors: np.ndarray | None = None,
        self_vectors: np.ndarray | None = None,
        cross_vectors: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Read a target in one call: logits (T, V), weights (L, H, T, T) and (L, H, T, S); writes to the vectors
        (T, L, 3, H, E) and (T, L, H, E), if any.
        """
        assert self.decoder is not None
        config, length = self.config, len(target)
        layers, heads = self.decoder.num_layers, config.num_heads
        source_length = memory[0].shape[2] if memory else 0
        tokens = np.array(target, dtype=np.int64)
        cache = empty(layers, 2, 1, heads, length + 3, config.d_model // heads)
        table = self.target_positions.first(length)
        seen = [t + 1 if causal else length for t in range(length)]
        self_weights = [empty(layers, 1, heads, count) for count in seen]
        cross_weights = [empty(layers, 1, heads, source_length) for _ in seen]
        addresses = pointers([one.ctypes.data for one in memory])
        steps = [
            Step(
                tokens=tokens[t:].ctypes.data,
                position_signal=None if table.signals is None else table.signals[t].ctypes.data,
                rotary=None if table.rotary_cos_sin is None else table.rotary_cos_sin[t].ctypes.data,
                cache=cache.ctypes.data,
                memory=addresses,
                sentences=1,
                rows=1,
                length=seen[t],
                capacity=length + 3,
                source_length=source_length,
                source_capacity=source_length,
                shared_cache=1,
                num_later=0 if causal else length - 1 - t,
                self_heads=heads_struct(
                    self_weights[t] if observed else None,
                    self_factors,
                    None if self_vectors is None else self_vectors[t],
                ),
                cross_heads=heads_struct(
                    cross_weights[t] if observed else None,
                    cross_factors,
                    None if cross_vectors is None else cross_vectors[t],
                ),
            )
            for t in range(length)
        ]
        logits = self.run(steps, max(length, source_length))
        spread = np.zeros((layers, heads, length, length), dtype=np.float32)
        for t, weights in enumerate(self_weights):
            spread[:, :, t, : weights.shape[3]] = weights[:, 0]
        return logits, spread, np.stack(cross_weights, axis=3)[:, 0]

    def run(self, steps: Sequence[Step], keys: int) -> np.ndarray:
        """Return the logits of some steps (R, V)."""
        assert self.decoder is not None
        rows, vocabulary = sum(step.sentences * step.rows for step in steps), self.decoder.output.outputs
        logits, workspace, failure = empty(rows, vocabulary), self.workspace(self.decoder, rows, keys), Failure()
        done = self.code.decoder_steps(
            self.decoder, pointers([*map(ctypes.addressof, steps)]), len(steps), keys, workspace.ctypes.data,
            logits.ctypes.data, self.threads, failure,
        )  # fmt: skip
        assert done == 0, (failure.quantity, failure.value, failure.low, failure.high)
        return logits


def heads_struct(
    weights: np.ndarray | None, factors: np.ndarray | None, vectors: np.ndarray | None = None
) -> Heads:
    return Heads(*(None if one is None else one.ctypes.data for one in (weights, factors, vectors)))


@contextmanager
def scaled_heads(modules: Mapping[int, MultiHeadAttention], factors: np.ndarray) -> Iterator[None]:
    """Multiply the output of each head of a layer by its factor (L, H) inside the context."""

    def scale(layer: int) -> Any:
        row = torch.from_numpy(factors[layer])
        return lambda _, inputs: ((inputs[0].unflatten(-1, (len(row), -1)) * row[:, None]).flatten(-2),)

    hooks = [module.project_out.register_forward_pre_hook(scale(layer)) for layer, module in modules.items()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def language_model(absent: Sequence[int] = (), **changes: Any) -> DecoderOnly:
    torch.manual_seed(3)
    model = DecoderOnly(make_config(**changes), TARGET_SIZE, absent=absent).eval()
    scramble(model)
    return model


def classifier(**changes: Any) -> TextClassifier:
    torch.manual_seed(4)
    model = TextClassifier(make_config(**changes), SOURCE_SIZE, 5).eval()
    scramble(model)
    return model


SOURCE = [*random_ids(1, 11, TARGET_SIZE)[0].tolist(), EOS]
TARGET = [BOS, *random_ids(1, 6, TARGET_SIZE, seed=9)[0].tolist()]


@torch.no_grad()
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_a_target_read_in_one_call_has_the_logits_and_the_attention_of_teacher_forcing(variant, threads) -> None:
    model = scrambled_model(**variant).float()
    code = Code(model, threads=threads)
    encoded = code.encode([SOURCE])
    logits, self_weights, cross_weights = code.read(TARGET, encoded.memory)
    right = watch_pair(model, torch.tensor([SOURCE]), torch.tensor([TARGET]))
    assert_close(logits, right.logits)
    for attention, found in zip(
        right.attention, (encoded.weights.swapaxes(1, 2), self_weights, cross_weights), strict=True
    ):
        assert_close(found, attention.weights)


@torch.no_grad()
@pytest.mark.parametrize("threads", [1, 3])
def test_sentences_of_one_batch_have_independent_attention_weights_and_outputs(threads) -> None:
    model = scrambled_model(positions="rotary").float()
    found = Code(model, threads=threads).encode([SOURCE, TARGET])
    length = len(SOURCE)
    for rows, row in ((slice(0, length), SOURCE), (slice(length, None), TARGET)):
        right = watch_pair(model, torch.tensor([row]), torch.tensor([[BOS]])).attention[0].weights
        assert_close(found.weights[:, rows, :, : len(row)].swapaxes(1, 2), right)
        assert_close(found.output[rows], model.encode(torch.tensor([row]))[0][0])


@torch.no_grad()
def test_reporting_the_attention_changes_no_bit_of_the_logits() -> None:
    model = scrambled_model().float()
    code = Code(model)
    memory = code.encode([SOURCE]).memory
    ones = np.ones((3, 3), dtype=np.float32)
    vectors = {"self_vectors": empty(len(TARGET), 3, 90), "cross_vectors": empty(len(TARGET), 3, 30)}
    observed = code.read(TARGET, memory, self_factors=ones, cross_factors=ones, **vectors)[0]
    assert np.array_equal(code.read(TARGET, memory, observed=False)[0], observed)


@torch.no_grad()
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_vectors_of_each_head_are_those_of_the_model(variant, causal, threads) -> None:
    """Compare queries, keys and values; the keys and values of cross-attention are in the memory."""
    model = scrambled_model(**variant).float()
    code, heads = Code(model, threads=threads), model.config.num_heads
    head_dim, layers = model.config.d_model // heads, len(model.decoder_layers)
    own, cross = empty(len(TARGET), layers, 3, heads, head_dim), empty(len(TARGET), layers, heads, head_dim)
    encoded = code.encode([SOURCE])
    code.read(TARGET, encoded.memory, causal=causal, self_vectors=own, cross_vectors=cross)
    found = {
        "encoder": encoded.vectors.transpose(2, 0, 3, 1, 4),  # (3, L, H, rows, E)
        "decoder": own.transpose(2, 1, 3, 0, 4),
        "cross": [cross.transpose(1, 2, 0, 3), *(np.concatenate(encoded.memory[i::2]) for i in (0, 1))],
    }
    source, target = torch.tensor([SOURCE]), torch.tensor([TARGET])
    with changed(model, Changes(mask=causal)):
        for kind, (queries, keys, values) in found.items():
            for layer, head in np.ndindex(queries.shape[:2]):
                right = watch_head(model, kind, layer, head, source, target)
                for name, array in (("queries", queries), ("keys", keys), ("values", values)):
                    assert_close(array[layer, head], getattr(right, name))


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_without_the_causal_mask_each_target_token_attends_to_all(positions, monkeypatch) -> None:
    model = scrambled_model(positions=positions).float()
    code = Code(model, threads=2)
    logits, weights, _ = code.read(TARGET, code.encode([SOURCE]).memory, causal=False)
    monkeypatch.setattr(
        encoder_decoder, "causal_mask", lambda length, device: torch.ones(1, 1, length, length, dtype=torch.bool)
    )
    right = watch_pair(model, torch.tensor([SOURCE]), torch.tensor([TARGET]))
    assert_close(logits, right.logits)
    assert_close(weights, right.attention[1].weights)
    assert weights[:, :, 0, -1].min() > 0


@torch.no_grad()
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_output_of_a_head_is_multiplied_by_its_factor(kind) -> None:
    """Compare the factors 0 (head switched off) and 0.25 with the same factors in torch."""
    model = scrambled_model().float()
    layers = model.encoder_layers if kind == "encoder" else model.decoder_layers
    modules = {
        number: layer.cross_attention if kind == "cross" else layer.self_attention
        for number, layer in enumerate(layers)
    }
    factors = np.ones((len(modules), 3), dtype=np.float32)
    factors[0, 2], factors[1, 0], factors[-1, 1] = 0.0, 0.0, 0.25
    code = Code(model, threads=2)
    memory = code.encode([SOURCE], factors if kind == "encoder" else None).memory
    logits, *_ = code.read(
        TARGET,
        memory,
        self_factors=factors if kind == "decoder" else None,
        cross_factors=factors if kind == "cross" else None,
    )
    source, target = torch.tensor([SOURCE]), torch.tensor([TARGET])
    with scaled_heads(modules, factors):
        assert_close(logits, model(source, target)[0])
    assert np.abs(logits - model(source, target)[0].numpy()).max() > 0.01, "the factors do something"


@torch.no_grad()
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_a_decoder_without_cross_attention_is_a_language_model(variant) -> None:
    model = language_model(**variant)
    logits, weights, _ = Code(model, threads=2).read(TARGET)
    right = watch_continuation(model, torch.tensor([TARGET]))
    assert_close(logits, right.logits)
    assert_close(weights, right.attention[0].weights)


@torch.no_grad()
def test_a_language_model_without_its_mask_attends_to_all(monkeypatch) -> None:
    model = language_model()
    logits, *_ = Code(model).read(TARGET, causal=False)
    monkeypatch.setattr(
        decoder_only, "causal_mask", lambda length, device: torch.ones(1, 1, length, length, dtype=torch.bool)
    )
    assert_close(logits, model(torch.tensor([TARGET]))[0])


@torch.no_grad()
def test_ids_without_a_token_are_never_predicted() -> None:
    logits, *_ = Code(model := language_model(absent=[0, 2])).read(TARGET)
    assert_close(logits, model(torch.tensor([TARGET]))[0])
    assert logits[:, [0, 2]].max() < -9_000


@torch.no_grad()
@pytest.mark.parametrize("variant", [*VARIANTS.values(), BERT], ids=[*VARIANTS.keys(), "BERT"])
def test_the_encoder_of_a_classifier_writes_its_output(variant) -> None:
    model = classifier(**variant)
    found = Code(model, threads=2).encode([[BOS, *SOURCE]])
    ids = torch.tensor([[BOS, *SOURCE]])
    assert_close(found.output, model.encode(ids)[0][0])
    right = watch_text(model, ids, None).attention[0].weights
    assert_close(found.weights.swapaxes(1, 2), right)


@torch.no_grad()
def test_rows_that_attend_to_some_tokens_of_the_cache_report_their_weights() -> None:
    """Compare the order of `visible` with a bias for every token of the cache (weight 0 for masked tokens)."""
    code = Code(scrambled_model().float())
    memory, heads, head_dim = code.encode([SOURCE]).memory, 3, 10
    filled = np.random.default_rng(1).normal(size=(3, 2, 1, heads, 9, head_dim)).astype(np.float32)
    tokens, visible = np.array([7, 8]), np.array([[0, 2, 5, 6], [1, 3, 4, 7]], dtype=np.int32)
    bias = np.full((1, 2, 9), -np.inf, dtype=np.float32)
    for row, indices in enumerate(visible):
        bias[0, row, indices] = 0
    found = {}
    for kind in ("visible", "bias"):
        cache, weights = filled.copy(), empty(3, 2, heads, 4 if kind == "visible" else 8)
        step = Step(
            tokens=tokens.ctypes.data,
            cache=cache.ctypes.data,
            visible=visible.ctypes.data if kind == "visible" else None,
            cache_bias=bias.ctypes.data if kind == "bias" else None,
            memory=pointers([one.ctypes.data for one in memory]),
            sentences=1, rows=2, length=8, capacity=9, num_visible=4,
            source_length=len(SOURCE), source_capacity=len(SOURCE),
            self_heads=heads_struct(weights, None),
        )  # fmt: skip
        found[kind] = code.run([step], 12), weights
    assert np.array_equal(found["visible"][0], found["bias"][0])
    weights = found["bias"][1]
    for row, indices in enumerate(visible):
        assert np.array_equal(weights[:, row][..., indices], found["visible"][1][:, row])
    assert_close(weights.sum(-1), np.ones((3, 2, heads)))
    assert np.count_nonzero(weights) == 3 * 2 * heads * 4


@pytest.mark.parametrize(("later", "range_"), [(-1, "0..4"), (5, "0..4")])
def test_later_tokens_beyond_the_cache_are_refused(later, range_) -> None:
    code = Code(language_model())
    cache, tokens, failure = empty(3, 2, 1, 3, 9, 10), np.array([5]), Failure()
    step = Step(
        tokens=tokens.ctypes.data, cache=cache.ctypes.data, sentences=1, rows=1, length=5, capacity=9,
        shared_cache=1, num_later=later,
    )  # fmt: skip
    assert code.decoder is not None
    done = code.code.decoder_steps(
        code.decoder, pointers([ctypes.addressof(step)]), 1, 9, 0, 0, 1, failure
    )  # fmt: skip
    assert (done, failure.quantity, failure.value) == (-1, b"later tokens", later)
    assert f"{failure.low}..{failure.high}" == range_


@torch.no_grad()
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_linear_layer_equals_that_of_torch(precision: Precision) -> None:
    model = classifier()
    code = Code(model, precision)
    packed: Linear = code.weights.linear("output", 5, bias=True)
    x, y = np.random.default_rng(2).normal(size=(7, 30)).astype(np.float32), empty(7, 5)
    code.code.linear_layer(packed, _FORMATS[precision], x.ctypes.data, 7, y.ctypes.data)
    weight = model.output.weight.numpy()
    if precision == "int8":
        integers, scale = quantize_int8(weight)
        weight = integers * scale[:, None]
    assert_close(y, nn.functional.linear(torch.from_numpy(x), torch.from_numpy(weight), model.output.bias))
