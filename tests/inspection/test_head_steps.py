"""The steps of a head: its scores, weights and outputs follow from its queries, keys and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.inference.test_classifier import make_classifier
from tests.inference.test_generator import make_generator
from tests.inference.translation.test_translator import make_translator
from tests.tolerances import assert_close

from manyheads.errors import UsageError
from manyheads.inference.inspect_options import Changes, HeadName, InspectOptions
from manyheads.inspection.classification import inspect_classification
from manyheads.inspection.head_steps import inspect_head
from manyheads.inspection.isolation import isolated_with_changes
from manyheads.inspection.language_model import inspect_language_model
from manyheads.inspection.translation import inspect_translation
from manyheads.tensors.capture import attention_groups

CASES: dict[str, tuple[Callable[[], Any], Callable[..., Any], InspectOptions]] = {
    "translator": (make_translator, inspect_translation, InspectOptions(padding=2)),
    "target": (make_translator, inspect_translation, InspectOptions(target="dad")),
    "rotary": (lambda: make_translator(positions="rotary"), inspect_translation, InspectOptions(prefix="ab")),
    "classifier": (make_classifier, inspect_classification, InspectOptions()),
    "generator": (lambda: make_generator(window=40), inspect_language_model, InspectOptions(max_tokens=5)),
}


@pytest.mark.parametrize("changes", [Changes(), Changes(positions=False)])
@pytest.mark.parametrize("case", CASES)
def test_the_steps_are_those_of_the_paper(case: str, changes: Changes) -> None:
    make, inspect, options = CASES[case]
    with isolated_with_changes(make(), changes) as loaded:
        document = inspect(loaded, "abc", options)
        for attention in document.attention:
            layers, heads = attention.weights.shape[:2]
            for layer, head in np.ndindex(layers, heads):
                joined: list[torch.Tensor] = []
                module = attention_groups(loaded.model)[attention.kind][layer]
                with module.project_out.register_forward_pre_hook(lambda _, x, seen=joined: seen.append(x[0])):
                    found = inspect_head(loaded, "abc", HeadName(attention.kind, layer, head), options)
                width = found.queries.shape[1]
                scores = found.queries @ found.keys.T / np.sqrt(width)
                assert_close(found.scores, scores)
                np.testing.assert_array_equal(found.mask, attention.mask)
                exponents = np.exp(np.where(found.mask > 0, found.scores, -np.inf))
                assert_close(found.weights, exponents / exponents.sum(1, keepdims=True))
                assert_close(found.weights, attention.weights[layer, head])
                assert_close(found.outputs, found.weights @ found.values)
                output = joined[-1][0, :, head * width : (head + 1) * width].numpy()
                assert_close(found.outputs, output)


def test_without_the_causal_mask_all_weights_are_above_zero() -> None:
    with isolated_with_changes(make_translator(), Changes(mask=False)) as loaded:
        found = inspect_head(loaded, "abc", HeadName("decoder", 0, 0), InspectOptions(target="dad"))
    assert found.mask.all()
    assert (found.weights > 0).all()


def test_a_head_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="no attention of kind"):
        inspect_head(make_classifier(), "abc", HeadName("cross", 0, 0))
    with pytest.raises(UsageError, match="prefix has no meaning"):
        inspect_head(make_classifier(), "abc", HeadName("encoder", 0, 0), InspectOptions(prefix="a"))
