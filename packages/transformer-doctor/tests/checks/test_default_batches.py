"""Steps of Hugging Face models get the batches that they read, and other steps two tensors with both marks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from specimens import peers
from specimens.planted import BOS, EOS, PAD, VOCABULARY, Transformer
from transformer_doctor import examine
from transformer_doctor.checks.default_batches import default_collate
from transformer_doctor.model_adapter import ModelAdapter

SOURCES, TARGETS = [[3, 4], [5, 6, 7]], [[8], [9, 10]]


def test_targets_stand_between_both_marks_by_default() -> None:
    model = Transformer()
    adapter = ModelAdapter("encoder-decoder", model, model, (VOCABULARY, VOCABULARY), PAD, BOS, EOS)
    source, target = default_collate(adapter, time_first=False)(SOURCES, TARGETS)
    assert source.tolist() == [[3, 4, EOS, PAD], [5, 6, 7, EOS]]
    assert target.tolist() == [[BOS, 8, EOS, PAD], [BOS, 9, 10, EOS]]
    assert torch.equal(default_collate(adapter, time_first=True)(SOURCES, TARGETS)[1], target.t())


def steps_of(model: Any) -> dict[str, Callable[..., Tensor]]:
    """Return training steps of a sequence-to-sequence model as they are usually written."""
    updated = peers.updating(model)

    def of_tensors(source: Tensor, target: Tensor) -> Tensor:
        labels = target.masked_fill(target == model.config.pad_token_id, -100)
        return updated(input_ids=source, attention_mask=(source != model.config.pad_token_id).long(), labels=labels)

    def of_three(input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> Tensor:
        return updated(input_ids=input_ids, attention_mask=attention_mask, labels=labels)

    def of_mapping(batch: Any) -> Tensor:
        return updated(**batch.to("cpu"))

    def of_attributes(inputs: Any) -> Tensor:
        return updated(input_ids=inputs.input_ids, attention_mask=inputs["attention_mask"], labels=inputs.labels)

    def of_all(*batch: Tensor) -> Tensor:
        return of_tensors(*batch)

    return {
        "tensors": of_tensors,
        "all": of_all,
        "three": of_three,
        "mapping": of_mapping,
        "attributes": of_attributes,
    }


@pytest.mark.usefixtures("few_updates", "training_alone")
@pytest.mark.parametrize(
    ("name", "style"),
    [("bart", "tensors"), ("t5", "all"), ("marian", "three"), ("gpt2", "attributes"), ("t5", "mapping")],
)
def test_steps_of_hugging_face_have_no_finding(name: str, style: str) -> None:
    model = peers.make(name)
    report = examine(model, train_step=steps_of(model)[style], longest=32)
    assert report.names == [], report
    assert "labels are the next tokens, from the first to the end mark" in report.asked


@pytest.mark.usefixtures("few_updates", "training_alone", "rows_unasked")
def test_pairs_are_decoded_with_generate() -> None:
    model = peers.make("bart")

    def greedy(source: Any) -> Tensor:
        model.eval()
        mask = (source != PAD).long()
        return model.generate(source, attention_mask=mask, max_length=16, do_sample=False, num_beams=1)

    report = examine(model, train_step=steps_of(model)["tensors"], greedy=greedy, longest=32)
    assert report.names == [], report
