"""`manyheads.doctor` has the functions of transformer_doctor, which find nothing in the parts of manyheads."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import transformer_doctor
from manyheads import doctor
from manyheads.config.schema import ModelConfig
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.doctor import examine, examine_attention, examine_collate
from manyheads.model.attention import attend
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.tensors.pairs import Batch, make_batch

PAD, BOS, EOS = 0, 1, 2
MARKS: dict[str, Any] = {"vocab_size": 23, "pad": PAD, "bos": BOS, "eos": EOS}
Rows = list[list[int]]


def test_the_functions_are_those_of_the_doctor_and_that_of_machines() -> None:
    assert sorted(doctor.__all__) == sorted([*transformer_doctor.__all__, "examine_machine"])
    assert all(getattr(doctor, name) is getattr(transformer_doctor, name) for name in transformer_doctor.__all__)


def test_the_attention_of_manyheads_matches_the_formula() -> None:
    assert not examine_attention(attend).findings


def test_batches_of_manyheads_are_sound() -> None:
    def collate(sources: Rows, targets: Rows) -> Batch:
        return make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS)

    assert not examine_collate(collate, **MARKS).findings


@pytest.mark.usefixtures("short_examinations")
@pytest.mark.parametrize(("positions", "norm"), [("sinusoidal", "pre"), ("learned", "post"), ("rotary", "pre")])
def test_a_manyheads_model_is_sound_from_batch_to_cache(norm: Any, positions: Any) -> None:
    torch.manual_seed(1)
    shape = {"d_model": 16, "num_heads": 2, "d_ff": 29, "num_encoder_layers": 1, "num_decoder_layers": 1}
    config = ModelConfig(**shape, norm=norm, positions=positions, dropout=0.1, max_positions=50)
    model = EncoderDecoder(config, 23, 23, pad=PAD)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def collate(sources: list[list[int]], targets: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
        batch = make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS)
        return batch.source, batch.target_in, batch.target_out

    def step(source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        logits = model(source, target_in)
        loss = functional.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    report = examine(
        model,
        **MARKS,
        longest=64,
        left_padding=False,
        train_step=step,
        collate=collate,
        stepper=lambda source: EncoderDecoderStepper(model, source),
    )
    assert not report.findings, report
