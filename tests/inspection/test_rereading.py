"""A stepper that recomputes each prefix gives the log-probabilities of a stepper with a KV cache."""

from __future__ import annotations

import torch
from tests.decoding.test_language_model import language_model
from tests.inference.translation.test_translator import make_translator
from tests.tolerances import assert_close

from manyheads.decoding.language_model import DecoderOnlyStepper
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.inspection.rereading import RereadingStepper, RereadingTextStepper
from manyheads.search.interface import Stepper
from manyheads.text.tokenizer import BOS, EOS, PAD

SELECTIONS = ([1, 0, 0], [2, 1, 0], [0, 1], [1, 0, 1])


def check(stepper: Stepper, reference: Stepper, selections: tuple[list[int], ...], rows: int) -> None:
    """Step with two steppers, select the same rows, and compare their log-probabilities."""
    tokens = torch.full((rows,), BOS)
    for selection in selections:
        found, expected = stepper.step(tokens), reference.step(tokens)
        assert found.dtype == torch.float32
        assert_close(found, expected)
        chosen = torch.tensor(selection)
        stepper.select(chosen)
        reference.select(chosen)
        tokens = 4 + chosen


@torch.inference_mode()
def test_rereading_in_a_translator_equals_the_kv_cache() -> None:
    model = make_translator(num_decoder_layers=2).model
    source = torch.tensor([[5, 9, 7, EOS, PAD], [6, 8, 4, 9, EOS]])
    check(RereadingStepper(model, source), EncoderDecoderStepper(model, source), SELECTIONS, 2)


@torch.inference_mode()
def test_rereading_in_a_language_model_beyond_its_window_equals_the_kv_cache() -> None:
    model, context = language_model(), [[3, 1, 4]]
    selections = ([0, 0], [1, 0], *([[0, 1]] * 9))
    stepper, reference = (kind(model, context, 5) for kind in (RereadingTextStepper, DecoderOnlyStepper))
    check(stepper, reference, selections, 1)
