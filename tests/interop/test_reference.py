"""The outputs of a model with which its export is compared."""

from __future__ import annotations

import torch
from tests.model.samples import scrambled_model
from tests.tolerances import approx

from manyheads.inference.parity import Samples
from manyheads.interop.reference import reference
from manyheads.text.tokenizer import BOS, EOS, PAD


def test_scores_are_those_of_the_outputs_where_padding_and_begin_mark_are_forbidden() -> None:
    model, row = scrambled_model().float().eval(), [5, 9, 4]
    found = reference(model, Samples([row], ""))
    (output,) = found.outputs
    with torch.no_grad():
        logits = model(torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *output]]))[0]
    logits[:, [PAD, BOS]] = -torch.inf
    expected = logits.log_softmax(-1)[range(len(output) + 1), [*output, EOS]]
    assert found.scores[0] == approx(expected.tolist())
    assert len(output) <= found.limits[0] == len(row) + 10
