"""An export for browsers is compared in Node.js with its run."""

from __future__ import annotations

import base64
import dataclasses
import json
import subprocess
from pathlib import Path

import pytest
import torch
from tests.model.rounded import rounded_model
from tests.model.samples import TARGET_SIZE, classifier, language_model, random_ids, scrambled_model
from tests.web.engine.node import pack
from tests.web.text.browser import node

from manyheads.errors import ParityError
from manyheads.inference.parity import Reference, Samples
from manyheads.interop.reference import reference, reference_of_text_model
from manyheads.text.tokenizer import BOS, EOS
from manyheads.web import check
from manyheads.web.check import _find_node, compare_packed
from manyheads.web.pack import PackedModel
from manyheads.web.scripts import ENGINE

ROWS = [random_ids(1, length, TARGET_SIZE, seed=length)[0].tolist() for length in (1, 4, 11)]
MARKED = [[BOS, *row, EOS] for row in ROWS]


@pytest.fixture(autouse=True, scope="module")
def needs_node() -> None:
    node()


def make_head(packed: PackedModel) -> str:
    return json.dumps({"wasm": base64.b64encode(ENGINE.read_bytes()).decode(), "header": packed.header})


def compare(packed: PackedModel, expected: Reference, numbers: str = "float32"):
    decodes = "memory_kv" in packed.header
    return compare_packed(make_head(packed), packed.block(), expected, numbers, decodes=decodes)


@pytest.mark.parametrize("numbers", ["float32", "int8"])
def test_an_exported_translator_gives_the_outputs_of_its_run(numbers: str) -> None:
    model = scrambled_model().float()
    packed = pack(model, "int8" if numbers == "int8" else "fp32")
    expected = reference(rounded_model(model) if numbers == "int8" else model, Samples(ROWS, "some rows"))
    found = compare(packed, expected, numbers)
    assert found is not None
    assert (found.sentences, found.same_outputs, found.origin) == (3, 3, "some rows")
    assert found.tokens == sum(len(row) + 1 for row in expected.outputs)
    assert found.largest < (1e-4 if numbers == "float32" else 0.1)


@pytest.mark.parametrize("task", ["classification", "language-modeling"])
def test_other_exported_models_give_the_scores_of_their_run(task: str) -> None:
    model = (classifier() if task == "classification" else language_model()).float().eval()
    expected = reference_of_text_model(model, MARKED)
    if task == "classification":
        with torch.inference_mode():
            log_probs = model(torch.tensor([MARKED[1]])).log_softmax(-1)[0]
        assert expected.scores[1] == pytest.approx(log_probs.tolist())
    else:
        assert [len(row) for row in expected.scores] == [len(row) - 1 for row in MARKED]
    found = compare(pack(model, task=task), expected)
    assert found is not None
    assert (found.same_outputs, found.largest < 1e-4) == (3, True)


def test_a_model_with_other_weights_is_refused() -> None:
    model = scrambled_model().float()
    expected = reference(model, Samples(ROWS, "some rows"))
    other = scrambled_model().float()
    with torch.no_grad():
        other.output.weight.neg_()
    with pytest.raises(ParityError, match="does not give what the run gives"):
        compare(pack(other), expected)


def test_a_damaged_model_is_refused_with_the_reason() -> None:
    model = scrambled_model().float()
    packed = pack(model)
    damaged = dataclasses.replace(packed, header={**packed.header, "format": 7})
    with pytest.raises(ParityError, match=r"not be computed in Node\.js, and was not kept: the model has format 7"):
        compare(damaged, reference(model, Samples(ROWS, "")))


def test_a_node_process_that_does_not_answer_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = scrambled_model().float()
    monkeypatch.setattr(check, "_SECONDS", 0.5)
    monkeypatch.setattr(check, "model_script", lambda name: "setInterval(() => 0, 1000)")
    with pytest.raises(ParityError, match=r"did not compute the model within 0\.5 seconds"):
        compare(pack(model), reference(model, Samples(ROWS, "")))


def test_nothing_is_compared_without_a_recent_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def found() -> str | None:
        _find_node.cache_clear()
        return _find_node()

    model = scrambled_model().float()
    for answer, accepted in (("v18.1.0", True), ("v16.20.2", False), ("what?", False)):
        script = tmp_path / "node"
        script.write_text(f"#!/bin/sh\necho {answer}\n")
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        assert (found() == str(script)) is accepted
    assert compare(pack(model), reference(model, Samples(ROWS, ""))) is None
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("started"))
    monkeypatch.setenv("PATH", "")
    assert found() is None
    _find_node.cache_clear()
