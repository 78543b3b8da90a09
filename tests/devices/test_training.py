"""Whole trainings on a pretended CUDA device: no tensor is left on the wrong device, and the result is the CPU's.

Dropout is 0, because its random numbers differ between devices.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from tests.devices.pretended import CUDA, MixedDevicesError, WithoutDevice, pretended_cuda
from tests.tolerances import approx, assert_close
from tests.training.parts import (
    BOS,
    CPU,
    EOS,
    PAD,
    VOCABULARY,
    CollectingListener,
    MemoryStorage,
    PairUpdates,
    random_pairs,
    tiny_model,
    translation_objective,
    weights,
)
from torch import Tensor

from manyheads.config.schema import ModelConfig, TrainingConfig
from manyheads.model import encoder_decoder
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.masks import causal_mask
from manyheads.reports import ValidationReport
from manyheads.tensors.blocks import make_blocks
from manyheads.tensors.examples import Example, make_examples
from manyheads.tensors.masked import hide_tokens, make_masked
from manyheads.tensors.pairs import TensorBatch
from manyheads.training import objective as objectives
from manyheads.training.distributed import ALONE
from manyheads.training.loss import cross_entropy_sums
from manyheads.training.objective import (
    Objective,
    classification_loss,
    corpus_nll,
    masked_loss,
    next_token_loss,
)
from manyheads.training.trainer import Trainer
from manyheads.training.update import Updater

SMALL = ModelConfig(
    d_model=16, d_ff=20, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, dropout=0.0, max_positions=64
)


def trained(device: torch.device, **settings: Any) -> tuple[dict[str, Tensor], list[ValidationReport]]:
    """Train a translator for 7 updates of 2 micro-batches; return its weights on the CPU, and its validations."""
    plan = {"steps": 7, "warmup_steps": 2, "precision": "fp32", "log_every": 1, "save_every": 3, "ema": 0.9}
    config = TrainingConfig(**(plan | {"clip_norm": 0.5} | settings))
    sources, targets = random_pairs(23)
    model = tiny_model(positions="rotary").to(device)
    objective = translation_objective(model, config)
    listener = CollectingListener()
    storage = MemoryStorage()

    def validate(step: int) -> ValidationReport:
        nats, tokens = corpus_nll(model.eval(), sources[:5], targets[:5], bos=BOS, eos=EOS)
        model.train()
        return ValidationReport(step, nats / tokens, {}, False, None)

    trainer = Trainer(
        objective,
        config,
        PairUpdates(sources, targets, parts=2),
        device=device,
        precision="fp32",
        listener=listener,
        validate=validate,
        storage=storage,
    )
    trainer.run()
    snapshot, _ = storage.saved[-1]
    trainer.restore(snapshot)
    assert {tensor.device.type for tensor in model.parameters()} == {device.type}
    (published,) = {tensor.device.type for tensor in trainer.published_weights().values()}
    assert published == device.type
    return {name: tensor.cpu() for name, tensor in weights(model).items()}, listener.validations


@pytest.mark.parametrize(
    "settings",
    [{}, {"optimizer": "muon"}, {"optimizer": "adam", "r_drop": 1.0}, {"schedule": "cosine"}],
    ids=["adamw", "muon", "adam-r-drop", "cosine"],
)
def test_a_training_is_that_of_the_cpu(settings: dict[str, Any]) -> None:
    """Cover loss, backward, accumulation, clipping, optimiser, EMA, validation, snapshot and restore."""
    expected, expected_reports = trained(CPU, **settings)
    with pretended_cuda() as device:
        found, reports = trained(device, **settings)
    assert found.keys() == expected.keys()
    assert_close(found, expected, magnitude=1e4)  # Adam scales the rounding of zero gradients to full steps
    assert [report.loss for report in reports] == pytest.approx([report.loss for report in expected_reports])


def classification(device: torch.device) -> tuple[Objective, Any]:
    rows = [Example([5, 6, 7], 2), Example([8, EOS, 9, 10], 0), Example([11], 1)]
    batch = make_examples(rows, pad=PAD, bos=BOS, eos=EOS, with_types=True)
    model = TextClassifier(SMALL.model_copy(update={"token_types": 2}), VOCABULARY, 3, pad=PAD)
    loss = partial(classification_loss, smoothing=0.1, class_weights=torch.tensor([1.0, 2.0, 3.0]))
    return Objective(model.to(device), loss), batch


def masked(device: torch.device) -> tuple[Objective, Any]:
    rng = np.random.default_rng(3)
    rows = [hide_tokens([5] * count, 0.4, rng, mask=0, others=(4, VOCABULARY)) for count in (3, 9, 1)]
    model = MaskedLanguageModel(SMALL, VOCABULARY, pad=PAD)
    batch = make_masked(rows, pad=PAD, bos=BOS, eos=EOS)
    return Objective(model.to(device), partial(masked_loss, smoothing=0.1)), batch


def language_model(device: torch.device) -> tuple[Objective, Any]:
    stream = np.arange(4, 104, dtype=np.int32) % VOCABULARY
    model = DecoderOnly(SMALL, VOCABULARY, pad=PAD, absent=(2,))
    batch = make_blocks(stream, np.array([0, 31, 57]), 11)
    return Objective(model.to(device), partial(next_token_loss, smoothing=0.1)), batch


@pytest.mark.parametrize("make", [classification, masked, language_model])
def test_an_update_of_every_other_task_is_that_of_the_cpu(
    make: Callable[[torch.device], tuple[Objective, Any]],
) -> None:
    def losses(device: torch.device) -> list[float]:
        torch.manual_seed(1)
        objective, batch = make(device)
        updater = Updater(
            objective, TrainingConfig(steps=2, precision="fp32"), device=device, precision="fp32", world=ALONE
        )
        found = []
        for _ in range(2):
            found += [float(part.loss) for part in updater.gradients(batch.halves(), batch.target_tokens)]
            found.append(updater.apply(1e-3))
        return found

    expected = losses(CPU)
    with pretended_cuda() as device:
        assert losses(device) == approx(expected)


def index_on_the_cpu(model: Any, batch: Any) -> tuple[Tensor, Tensor]:
    """Compute `hidden_states` with the positions of real tokens left on the CPU."""
    hidden, positions = model.decode(batch.target_in, *model.encode(batch.source)), batch.target_positions.cpu()
    return hidden.flatten(0, 1).index_select(0, positions), batch.target_out.flatten().index_select(0, positions)


def labels_on_the_cpu(hidden: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, smoothing: float) -> Any:
    """Compute `cross_entropy_sums` with the labels left on the CPU."""
    return cross_entropy_sums(hidden, weight, bias, labels.cpu(), smoothing)


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a mask made without device": (encoder_decoder, "causal_mask", lambda length, device=None: causal_mask(length)),
    "arange on the CPU": (encoder_decoder, "torch", WithoutDevice("arange")),
    "an index on the CPU": (objectives, "_hidden_states", index_on_the_cpu),
    "labels on the CPU": (objectives, "cross_entropy_sums", labels_on_the_cpu),
    "a batch on the CPU": (TensorBatch, "to", lambda self, device: self),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_injected_fault_raises_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[name])
    with pretended_cuda(), pytest.raises(MixedDevicesError):
        trained(CUDA)
