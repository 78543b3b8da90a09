"""Attention and alternatives in C are those of teacher forcing with torch."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch
from tests.inference.native.test_model import BEAM, ROWS, native_and_reference, search
from tests.tolerances import assert_close

from manyheads.decoding.rescoring import review as review_with_torch
from manyheads.inference.native.build import library
from manyheads.inference.native.rescoring import review

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler here")


@pytest.mark.parametrize("layer", [0, -1])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_attention_and_alternatives_are_those_of_torch(layer, positions) -> None:
    native, model = native_and_reference(positions=positions)
    options = replace(BEAM, alternatives=3, alignment=True, attention_layer=layer)
    outputs = search(native, BEAM)
    found = review(native, ROWS, outputs, options, workers=1)
    with torch.inference_mode():
        right = review_with_torch([model.eval()], ROWS, outputs, options)
    for own, other in zip(chain.from_iterable(found), chain.from_iterable(right), strict=True):
        assert replace(own, alternatives=None, attention=None) == replace(other, alternatives=None, attention=None)
        assert_close(torch.tensor(own.attention), torch.tensor(other.attention), dtype=torch.float32)
        assert [[token for token, _ in pairs] for pairs in own.alternatives] == [
            [token for token, _ in pairs] for pairs in other.alternatives
        ]
        values, expected = (
            np.array([[value for _, value in pairs] for pairs in hypothesis.alternatives])
            for hypothesis in (own, other)
        )
        assert_close(torch.from_numpy(values), torch.from_numpy(expected), dtype=torch.float32)
