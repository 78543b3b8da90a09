"""The models of the browser engine compute the results of the models of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.model.rounded import rounded_model
from tests.model.samples import (
    BERT,
    BOS,
    EOS,
    SOURCE_SIZE,
    TARGET_SIZE,
    VARIANTS,
    classifier,
    language_model,
    random_ids,
    scaled_heads,
    scrambled_model,
)
from tests.tolerances import assert_close
from tests.web.engine.node import Node, array, pack

from manyheads.errors import UsageError
from manyheads.inference.inspect_options import Changes, HeadName
from manyheads.inspection.changes import changed
from manyheads.model import encoder_decoder
from manyheads.tensors.capture import attention_groups, capture, watch_head
from manyheads.views.codec import array_from_json

SOURCE = [*random_ids(1, 11, TARGET_SIZE)[0].tolist(), EOS]
TARGET = [BOS, *random_ids(1, 6, TARGET_SIZE, seed=9)[0].tolist()]
CLOSE = 1e-4  # logits and attention
CLOSE_IN = {"fp32": CLOSE, "int8": 0.1}  # in int8, an activation may be rounded to another integer
# Each variant in one precision, each kind of positions in both.
PRECISIONS = ("fp32", "int8", "fp32", "int8", "int8", "fp32")
VARIANTS_IN_A_PRECISION = [*zip(VARIANTS.values(), PRECISIONS, strict=True)]


def load_model(node: Node, model: Any, precision: str = "fp32", task: str = "translation", **sections: Any) -> Any:
    """Load a model; return it with its weights rounded to the precision."""
    node.load("model", pack(model, precision, task, **sections))
    return rounded_model(model) if precision == "int8" else model


def max_difference(values: Any, expected: Any) -> float:
    """Return the largest absolute difference."""
    expected = np.asarray(expected, dtype=np.float64)
    return float(np.abs(array(values, *expected.shape) - expected).max())


@torch.no_grad()
@pytest.mark.parametrize(("variant", "precision"), [
    *VARIANTS_IN_A_PRECISION,
    ({"positions": "learned", "token_types": 2, "embedding_norm": True}, "fp32"),
    ({"activation": "swish", "d_model": 64, "num_heads": 4}, "int8"),
    ({"activation": "gelu-tanh"}, "fp32"),
], ids=str)  # fmt: skip
def test_a_pair_has_the_logits_and_the_attention_of_the_model(node, variant, precision) -> None:
    model = load_model(node, scrambled_model(**variant).float(), precision)
    found = node.call("read", "model", SOURCE, TARGET, {"attention": True})
    expected = capture(model, torch.tensor([SOURCE]), torch.tensor([TARGET]))
    assert max_difference(found["logits"], expected.logits) < CLOSE_IN[precision]
    for attention in expected.attention:
        assert max_difference(found["attention"][attention.kind], attention.weights) < CLOSE_IN[precision]


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_a_long_target_is_read_in_chunks_and_extends_the_positions(node, positions) -> None:
    model = load_model(node, scrambled_model(positions=positions, max_positions=300).float())
    source = [*random_ids(1, 150, TARGET_SIZE)[0].tolist(), EOS]
    target = [BOS, *random_ids(1, 130, TARGET_SIZE, seed=9)[0].tolist()]
    expected = model(torch.tensor([source]), torch.tensor([target]))[0]
    assert max_difference(node.call("read", "model", source, target, {})["logits"], expected) < CLOSE


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_the_causal_mask_can_be_turned_off(node, positions, monkeypatch) -> None:
    model = load_model(node, scrambled_model(positions=positions).float())
    found = node.call("read", "model", SOURCE, TARGET, {"attention": True, "causal": False})
    monkeypatch.setattr(
        encoder_decoder, "causal_mask", lambda length, device: torch.ones(1, 1, length, length, dtype=torch.bool)
    )
    expected = capture(model, torch.tensor([SOURCE]), torch.tensor([TARGET]))
    assert max_difference(found["logits"], expected.logits) < CLOSE
    assert max_difference(found["attention"]["decoder"], expected.attention[1].weights) < CLOSE


@torch.no_grad()
def test_heads_can_be_turned_off(node) -> None:
    model = load_model(node, scrambled_model().float())
    modules = {
        "encoder": dict(enumerate(layer.self_attention for layer in model.encoder_layers)),
        "decoder": dict(enumerate(layer.self_attention for layer in model.decoder_layers)),
        "cross": dict(enumerate(layer.cross_attention for layer in model.decoder_layers)),
    }
    for kind, layers in modules.items():
        factors = np.ones((len(layers), 3), dtype=np.float32)
        factors[0, 1], factors[-1, 2] = 0, 0.5
        found = node.call("read", "model", SOURCE, TARGET, {"headFactors": {kind: factors.ravel().tolist()}})
        with scaled_heads(layers, factors):
            expected = model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]
        assert max_difference(found["logits"], expected) < CLOSE
        assert max_difference(found["logits"], model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]) > 0.01


@torch.no_grad()
@pytest.mark.parametrize(
    "variant", [{}, {"positions": "rotary"}, {"positions": "learned", "token_types": 2}], ids=str
)
def test_positions_can_be_left_out(node, variant) -> None:
    model = load_model(node, scrambled_model(**variant).float())
    found = node.call("read", "model", SOURCE, TARGET, {"positions": False})
    for embedding in (model.source_embedding, model.target_embedding):
        embedding.positions = None
    model.rotary = None
    expected = model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]
    assert max_difference(found["logits"], expected) < CLOSE


@torch.no_grad()
@pytest.mark.parametrize(("variant", "precision"), VARIANTS_IN_A_PRECISION, ids=str)
def test_a_language_model_has_the_logits_and_the_attention_of_the_model(node, variant, precision) -> None:
    model = load_model(node, language_model(**variant), precision, "language-modeling")
    found = node.call("read", "model", None, TARGET, {"attention": True})
    expected = capture(model, torch.tensor([TARGET]))
    assert max_difference(found["logits"], expected.logits) < CLOSE_IN[precision]
    assert max_difference(found["attention"]["decoder"], expected.attention[0].weights) < CLOSE_IN[precision]
    parts = node.call("append", "model", [TARGET[:3], TARGET[3:4], TARGET[4:]])
    for logits, last in zip(parts, (2, 3, len(TARGET) - 1), strict=True):
        assert max_difference(logits, expected.logits[last]) < CLOSE_IN[precision]


@torch.no_grad()
@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
@pytest.mark.parametrize("length", [19, 20, 21])
@pytest.mark.parametrize("make", [language_model, classifier])
def test_a_text_is_read_up_to_the_limit_of_positions(node, make, length, positions) -> None:
    """Positions that are computed have no limit of their own."""
    task, method, before = {
        language_model: ("language-modeling", "read", [None]),
        classifier: ("classification", "classify", []),
    }[make]
    model = load_model(node, make(positions=positions, max_positions=20), task=task)
    ids = [BOS, *random_ids(1, length - 1, min(SOURCE_SIZE, TARGET_SIZE))[0].tolist()]
    if positions == "learned" and length > 20:
        message = "an input of 21 tokens is longer than model.max_positions = 20"
        with pytest.raises(UsageError, match=message):
            model(torch.tensor([ids]))
        with pytest.raises(AssertionError, match=message):
            node.call(method, "model", *before, ids, {})
    else:
        found = node.call(method, "model", *before, ids, {})
        assert max_difference(found["logits"], model(torch.tensor([ids]))[0]) < CLOSE


@torch.no_grad()
def test_ids_without_a_token_have_log_probability_minus_infinity(node) -> None:
    model = load_model(node, language_model(absent=[0, 2]), task="language-modeling")
    found = array(node.call("read", "model", None, TARGET, {})["logits"], len(TARGET), -1)
    assert_close(found, model(torch.tensor([TARGET]))[0])


@torch.no_grad()
@pytest.mark.parametrize(
    ("variant", "precision"), [*VARIANTS_IN_A_PRECISION, (BERT, "int8"), ({"pooler": "relu"}, "fp32")], ids=str
)
def test_a_classifier_has_the_logits_and_the_attention_of_the_model(node, variant, precision) -> None:
    model = load_model(node, classifier(**variant), precision, "classification")
    ids = [BOS, *random_ids(1, 9, SOURCE_SIZE)[0].tolist(), EOS]
    found = node.call("classify", "model", ids, {"attention": True})
    expected = capture(model, torch.tensor([ids]))
    assert max_difference(found["logits"], expected.logits) < CLOSE_IN[precision]
    assert max_difference(found["attention"]["encoder"], expected.attention[0].weights) < CLOSE_IN[precision]


@torch.no_grad()
def test_the_second_text_of_a_pair_has_its_own_token_type(node) -> None:
    model = load_model(node, classifier(**BERT), task="classification")
    ids, types = [BOS, 7, 8, EOS, 9, 10, EOS], [0, 0, 0, 0, 1, 1, 1]
    expected = model(torch.tensor([ids]), torch.tensor([types]))[0]
    assert max_difference(node.call("classify", "model", ids, {"types": types})["logits"], expected) < CLOSE
    assert max_difference(node.call("classify", "model", ids, {})["logits"], expected) > 0.01


def check_heads(
    node: Node,
    model: Any,
    source: list[int] | None,
    target: list[int] | None,
    close: float = CLOSE,
    **options: Any,
) -> None:
    """Compare the steps of every head with those of Python, in which the model is called with the ids."""
    inputs = [None if ids is None else torch.tensor([ids]) for ids in (source, target)]
    for kind, modules in attention_groups(model).items():
        for layer, head in np.ndindex(len(modules), model.config.num_heads):
            name = {"kind": kind, "layer": layer, "head": head}
            found = node.call("headSteps", "model", name, source, target, {"causal": True, **options})
            expected = watch_head(model, *name.values(), *(inputs if source else inputs[1:]))
            assert found.keys() == vars(expected).keys()
            for field, value in vars(expected).items():
                if isinstance(value, np.ndarray):
                    array_ = array_from_json(found[field])
                    assert array_.shape == value.shape
                    assert max_difference(array_, value) < close * max(1, float(np.abs(value).max())), (name, field)
                else:
                    assert found[field] == value


@torch.no_grad()
@pytest.mark.parametrize(
    ("variant", "precision"),
    [*VARIANTS_IN_A_PRECISION, ({"positions": "learned", "token_types": 2, "embedding_norm": True}, "int8")],
    ids=str,
)
def test_the_steps_of_each_head_are_those_of_the_model(node, variant, precision) -> None:
    """The steps also agree without the causal mask."""
    model = load_model(node, scrambled_model(**variant).float(), precision)
    check_heads(node, model, SOURCE, TARGET, CLOSE_IN[precision])
    with changed(model, Changes(mask=False)):
        check_heads(node, model, SOURCE, TARGET, CLOSE_IN[precision], causal=False)


@torch.no_grad()
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_steps_of_each_head_of_a_language_model_are_those_of_the_model(node, variant) -> None:
    model = load_model(node, language_model(**variant), task="language-modeling")
    check_heads(node, model, None, TARGET)
    with changed(model, Changes(mask=False)):
        check_heads(node, model, None, TARGET, causal=False)


@torch.no_grad()
@pytest.mark.parametrize("variant", [*VARIANTS.values(), BERT], ids=str)
def test_the_steps_of_each_head_of_a_classifier_are_those_of_the_model(node, variant) -> None:
    model = load_model(node, classifier(**variant), task="classification")
    check_heads(node, model, [BOS, *SOURCE], None)


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_the_steps_of_a_head_reflect_disabled_heads_and_positions(node, positions) -> None:
    """Positions and a head of the layer below are off; the head's own output is shown before it is turned off."""
    model = load_model(node, scrambled_model(positions=positions).float())
    name = {"kind": "cross", "layer": 1, "head": 2}
    factors = np.ones((3, 3), dtype=np.float32)
    factors[0, 1] = factors[1, 2] = 0
    options = {"causal": True, "positions": False, "headFactors": {"cross": factors.ravel().tolist()}}
    found = node.call("headSteps", "model", name, SOURCE, TARGET, options)
    inputs = torch.tensor([SOURCE]), torch.tensor([TARGET])
    off = HeadName("cross", 0, 1), HeadName("cross", 1, 2)
    before = watch_head(model, *name.values(), *inputs)
    with changed(model, Changes(heads=off, positions=False)):
        expected = watch_head(model, *name.values(), *inputs)
    for field in ("queries", "keys", "values", "weights", "outputs"):
        assert max_difference(array_from_json(found[field]), getattr(expected, field)) < 3 * CLOSE
        assert max_difference(getattr(before, field), getattr(expected, field)) > 0.01


def test_the_steps_of_a_head_free_their_memory(node) -> None:
    load_model(node, scrambled_model().float())
    node.call("headSteps", "model", {"kind": "cross", "layer": 0, "head": 0}, SOURCE, TARGET, {"causal": True})
    before = node.call("state")
    for kind in ("encoder", "decoder", "cross"):
        node.call("headSteps", "model", {"kind": kind, "layer": 1, "head": 2}, SOURCE, TARGET, {"causal": True})
    assert node.call("state") == before
