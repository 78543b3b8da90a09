"""The models of the browser engine compute what the models of Python compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.decoding.native.test_heads import BERT, classifier, language_model, scaled_heads
from tests.interop.html.engine.node import Node, array, pack
from tests.model.samples import BOS, EOS, SOURCE_SIZE, TARGET_SIZE, VARIANTS, random_ids, scrambled_model

from manyheads.inspection.capture import attention_groups, watch_continuation, watch_head, watch_pair, watch_text
from manyheads.inspection.codec import array_from_json
from manyheads.interop.html.pack import rounded_model
from manyheads.model import encoder_decoder
from manyheads.tasks.inspecting.changes import Changes, HeadName, changed

SOURCE = [*random_ids(1, 11, TARGET_SIZE)[0].tolist(), EOS]
TARGET = [BOS, *random_ids(1, 6, TARGET_SIZE, seed=9)[0].tolist()]
CLOSE = 1e-4  # logits and attention
TASKS = {"LM": "language-modeling", "classifier": "classification"}


def loaded(node: Node, model: Any, precision: str = "fp32", task: str = "translation", **sections: Any) -> Any:
    """Load a model; return it with the weights that the precision leaves."""
    node.load("model", pack(model, precision, task, **sections))
    return rounded_model(model) if precision == "int8" else model


def far(values: Any, right: Any) -> float:
    """The largest difference."""
    right = np.asarray(right, dtype=np.float64)
    return float(np.abs(array(values, *right.shape) - right).max())


@torch.no_grad()
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("variant", [
    *VARIANTS.values(),
    {"positions": "learned", "token_types": 2, "embedding_norm": True},
    {"activation": "swish", "d_model": 64, "num_heads": 4},
    {"activation": "gelu-tanh"},
], ids=str)  # fmt: skip
def test_a_pair_has_the_logits_and_the_attention_of_the_model(node, variant, precision) -> None:
    model = loaded(node, scrambled_model(**variant).float(), precision)
    found = node.call("read", "model", SOURCE, TARGET, {"attention": True})
    right = watch_pair(model, torch.tensor([SOURCE]), torch.tensor([TARGET]))
    assert far(found["logits"], right.logits) < CLOSE
    for attention in right.attention:
        assert far(found["attention"][attention.kind], attention.weights) < CLOSE


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_a_long_target_is_read_in_parts_and_beyond_the_first_positions(node, positions) -> None:
    model = loaded(node, scrambled_model(positions=positions, max_positions=300).float())
    source = [*random_ids(1, 150, TARGET_SIZE)[0].tolist(), EOS]
    target = [BOS, *random_ids(1, 130, TARGET_SIZE, seed=9)[0].tolist()]
    right = model(torch.tensor([source]), torch.tensor([target]))[0]
    assert far(node.call("read", "model", source, target, {})["logits"], right) < CLOSE


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_the_causal_mask_can_be_turned_off(node, positions, monkeypatch) -> None:
    model = loaded(node, scrambled_model(positions=positions).float())
    found = node.call("read", "model", SOURCE, TARGET, {"attention": True, "causal": False})
    monkeypatch.setattr(
        encoder_decoder, "causal_mask", lambda length, device: torch.ones(1, 1, length, length, dtype=torch.bool)
    )
    right = watch_pair(model, torch.tensor([SOURCE]), torch.tensor([TARGET]))
    assert far(found["logits"], right.logits) < CLOSE
    assert far(found["attention"]["decoder"], right.attention[1].weights) < CLOSE


@torch.no_grad()
def test_heads_can_be_turned_off(node) -> None:
    model = loaded(node, scrambled_model().float())
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
            right = model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]
        assert far(found["logits"], right) < CLOSE
        assert far(found["logits"], model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]) > 0.01


@torch.no_grad()
@pytest.mark.parametrize(
    "variant", [{}, {"positions": "rotary"}, {"positions": "learned", "token_types": 2}], ids=str
)
def test_the_signal_of_positions_can_be_left_out(node, variant) -> None:
    model = loaded(node, scrambled_model(**variant).float())
    found = node.call("read", "model", SOURCE, TARGET, {"positions": False})
    for embedding in (model.source_embedding, model.target_embedding):
        embedding.positions = None
    model.rotary = None
    right = model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]
    assert far(found["logits"], right) < CLOSE


@torch.no_grad()
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_a_language_model_has_the_logits_and_the_attention_of_the_model(node, variant, precision) -> None:
    model = loaded(node, language_model(**variant), precision, "language-modeling")
    found = node.call("read", "model", None, TARGET, {"attention": True})
    right = watch_continuation(model, torch.tensor([TARGET]))
    assert far(found["logits"], right.logits) < CLOSE
    assert far(found["attention"]["decoder"], right.attention[0].weights) < CLOSE
    parts = node.call("append", "model", [TARGET[:3], TARGET[3:4], TARGET[4:]])
    for logits, last in zip(parts, (2, 3, len(TARGET) - 1), strict=True):
        assert far(logits, right.logits[last]) < CLOSE


@torch.no_grad()
def test_ids_without_a_token_stay_forbidden(node) -> None:
    model = loaded(node, language_model(absent=[0, 2]), task="language-modeling")
    found = array(node.call("read", "model", None, TARGET, {})["logits"], len(TARGET), -1)
    np.testing.assert_allclose(found, model(torch.tensor([TARGET]))[0], rtol=1e-6, atol=CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("variant", [*VARIANTS.values(), BERT, {"pooler": "relu"}], ids=str)
def test_a_classifier_has_the_logits_and_the_attention_of_the_model(node, variant, precision) -> None:
    model = loaded(node, classifier(**variant), precision, "classification")
    ids = [BOS, *random_ids(1, 9, SOURCE_SIZE)[0].tolist(), EOS]
    found = node.call("classify", "model", ids, {"attention": True})
    right = watch_text(model, torch.tensor([ids]), None)
    assert far(found["logits"], right.logits) < CLOSE
    assert far(found["attention"]["encoder"], right.attention[0].weights) < CLOSE


@torch.no_grad()
def test_the_second_text_of_a_pair_has_its_own_token_type(node) -> None:
    model = loaded(node, classifier(**BERT), task="classification")
    ids, types = [BOS, 7, 8, EOS, 9, 10, EOS], [0, 0, 0, 0, 1, 1, 1]
    right = model(torch.tensor([ids]), torch.tensor([types]))[0]
    assert far(node.call("classify", "model", ids, {"types": types})["logits"], right) < CLOSE
    assert far(node.call("classify", "model", ids, {})["logits"], right) > 0.01


def check_heads(node: Node, model: Any, source: list[int] | None, target: list[int] | None, **options: Any) -> None:
    """Compare the steps of every head with those of Python, in which the model is called with the ids."""
    inputs = [None if ids is None else torch.tensor([ids]) for ids in (source, target)]
    for kind, modules in attention_groups(model).items():
        for layer, head in np.ndindex(len(modules), model.config.num_heads):
            name = {"kind": kind, "layer": layer, "head": head}
            found = node.call("headSteps", "model", name, source, target, {"causal": True, **options})
            right = watch_head(model, *name.values(), *(inputs if source else inputs[1:]))
            assert found.keys() == vars(right).keys()
            for field, value in vars(right).items():
                if isinstance(value, np.ndarray):
                    array_ = array_from_json(found[field])
                    assert array_.shape == value.shape
                    assert far(array_, value) < CLOSE * max(1, float(np.abs(value).max())), (name, field)
                else:
                    assert found[field] == value


@torch.no_grad()
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(
    "variant", [*VARIANTS.values(), {"positions": "learned", "token_types": 2, "embedding_norm": True}], ids=str
)
def test_the_steps_of_each_head_are_those_of_the_model(node, variant, precision) -> None:
    """Also without the causal mask."""
    model = loaded(node, scrambled_model(**variant).float(), precision)
    check_heads(node, model, SOURCE, TARGET)
    with changed(model, Changes(mask=False)):
        check_heads(node, model, SOURCE, TARGET, causal=False)


@torch.no_grad()
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_steps_of_each_head_of_a_language_model_are_those_of_the_model(node, variant) -> None:
    model = loaded(node, language_model(**variant), task="language-modeling")
    check_heads(node, model, None, TARGET)
    with changed(model, Changes(mask=False)):
        check_heads(node, model, None, TARGET, causal=False)


@torch.no_grad()
@pytest.mark.parametrize("variant", [*VARIANTS.values(), BERT], ids=str)
def test_the_steps_of_each_head_of_a_classifier_are_those_of_the_model(node, variant) -> None:
    model = loaded(node, classifier(**variant), task="classification")
    check_heads(node, model, [BOS, *SOURCE], None)


@torch.no_grad()
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_the_steps_of_a_head_follow_what_is_turned_off(node, positions) -> None:
    """The positions, and a head in the layer below; the head's own output is that before it is turned off."""
    model = loaded(node, scrambled_model(positions=positions).float())
    name = {"kind": "cross", "layer": 1, "head": 2}
    factors = np.ones((3, 3), dtype=np.float32)
    factors[0, 1] = factors[1, 2] = 0
    options = {"causal": True, "positions": False, "headFactors": {"cross": factors.ravel().tolist()}}
    found = node.call("headSteps", "model", name, SOURCE, TARGET, options)
    inputs = torch.tensor([SOURCE]), torch.tensor([TARGET])
    off = HeadName("cross", 0, 1), HeadName("cross", 1, 2)
    before = watch_head(model, *name.values(), *inputs)
    with changed(model, Changes(heads=off, positions=False)):
        right = watch_head(model, *name.values(), *inputs)
    for field in ("queries", "keys", "values", "weights", "outputs"):
        assert far(array_from_json(found[field]), getattr(right, field)) < 3 * CLOSE
        assert far(getattr(before, field), getattr(right, field)) > 0.01


def test_the_steps_of_a_head_leave_no_memory_behind(node) -> None:
    loaded(node, scrambled_model().float())
    node.call("headSteps", "model", {"kind": "cross", "layer": 0, "head": 0}, SOURCE, TARGET, {"causal": True})
    before = node.call("state")
    for kind in ("encoder", "decoder", "cross"):
        node.call("headSteps", "model", {"kind": kind, "layer": 1, "head": 2}, SOURCE, TARGET, {"causal": True})
    assert node.call("state") == before
