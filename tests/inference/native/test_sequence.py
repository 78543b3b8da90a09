"""A sequence in C that is read in several calls has the logits of one pass with torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.inference.native.test_model import ROWS, native_and_reference
from tests.tolerances import assert_close

from manyheads.inference.native.build import library
from manyheads.inference.native.sequence import NativeSequence
from manyheads.text.tokenizer import BOS, EOS

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler here")
TARGET = [BOS, *([5, 7, 4, 9, 6] * 7)]  # longer than the tokens of a call


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_parts_have_the_logits_of_the_whole_and_a_copy_goes_its_own_way(positions) -> None:
    native, model = native_and_reference(positions=positions)
    with torch.inference_mode():
        right = model.eval()(torch.tensor([[*ROWS[0], EOS]]), torch.tensor([TARGET]))[0]
    memory = [array[0] for array in native.read([[*ROWS[0], EOS]])]
    sequence = NativeSequence(native, len(TARGET), memory)
    sequence.append(TARGET[:3])
    copied, logits = sequence.copy(), np.empty((len(TARGET) - 3, native.vocabulary), np.float32)
    sequence.append(TARGET[3:], logits)
    assert_close(torch.from_numpy(logits), right[3:], dtype=torch.float32)
    again = np.empty_like(logits)
    copied.append(TARGET[3:], again)
    assert np.array_equal(again, logits)
