"""Fine-tuning has the losses of transformers' own model in a hand-written loop on the same batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.interop.pretrained import ENCODERS, write_folder
from tests.runs.labelled import labelled_config, write_labelled
from tests.runs.language import make_language_config, write_play
from tests.tolerances import approx, within
from tests.training.parts import CollectingListener
from torch import Tensor, nn

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config, TrainingConfig
from manyheads.data.training_text import read_corpus
from manyheads.interop.huggingface.reader import read_pretrained
from manyheads.runs.train import train
from manyheads.text.tokenizer import PAD
from manyheads.training.distributed import ALONE
from manyheads.training.registry import prepare_task

STEPS = 24
PLAIN: dict[str, Any] = {
    "steps": STEPS, "optimizer": "adamw", "learning_rate": 5e-3, "betas": (0.9, 0.999),
    "epsilon": 1e-8, "weight_decay": 1.0, "schedule": "linear", "warmup_steps": 5, "label_smoothing": 0.0,
    "clip_norm": 0.1, "log_every": 1, "save_every": STEPS, "metric": "loss",
}  # fmt: skip


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_play(write_labelled(tmp_path_factory.mktemp("text")))


def batches_of(run: Path) -> list[Any]:
    """Return the batches of a finished run, update by update."""
    directory = RunDirectory(run)
    config = directory.config()
    updates = prepare_task(config, directory, read_corpus(config, directory.path), CollectingListener()).updates(
        ALONE
    )
    plans = [updates.epoch(number) for number in range(STEPS)]
    positions = [(epoch, position) for epoch, plan in enumerate(plans) for position in range(len(plan))][:STEPS]
    return [updates.batches(epoch, position, plans[epoch][position])[0] for epoch, position in positions]


def hand_written_loop(
    model: Any, training: TrainingConfig, batches: list[Any], loss_of: Callable[[Any, Any], Tensor]
) -> list[tuple[float, float]]:
    """Train in a plain loop without dropout; return the loss and the gradient norm of each update."""
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": training.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=training.learning_rate, betas=training.betas, eps=training.epsilon)
    figures = []
    for step, batch in enumerate(batches, start=1):
        rising, falling = step / training.warmup_steps, (STEPS - step) / (STEPS - training.warmup_steps)
        for group in optimizer.param_groups:
            group["lr"] = training.learning_rate * min(rising, falling)
        loss = loss_of(model, batch)
        loss.backward()
        assert training.clip_norm is not None
        norm = nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm)
        figures.append((float(loss.detach()), float(norm)))
        optimizer.step()
        optimizer.zero_grad()
    return figures


def assert_same_training(config: Config, original: Any, out: Path, loss_of: Callable[[Any, Any], Tensor]) -> None:
    """Train a run, then the original model on its batches, and compare losses and gradient norms."""
    listener = CollectingListener()
    train(config, out, listener=listener)
    figures = hand_written_loop(original, config.training, batches_of(out), loss_of)
    losses, norms = zip(*figures, strict=True)
    assert [step.loss for step in listener.steps] == approx(losses)
    assert [step.gradient_norm for step in listener.steps] == within(norms, 2e-3 * min(norms))
    assert max(losses) - min(losses) > 100 * 5e-5  # there is something to agree on
    assert config.training.clip_norm is not None
    assert max(norms) > config.training.clip_norm


def original_ids(folder: Path) -> Tensor:
    """Return the original tokenizer's id of each id of ours."""
    return torch.tensor(
        [-1 if token is None else token for token in read_pretrained(folder).tokenizer.original_ids]
    )


@pytest.mark.parametrize("family", ENCODERS)
def test_a_classifier_learns_like_a_hand_written_loop(
    family: str, text: Path, tmp_path: Path, training_seed: int
) -> None:
    """Padding, marks, loss, decay, schedule, clipping: a fault in any of them shows within a few updates."""
    folder = tmp_path / "theirs"
    original, _ = write_folder(folder, family, "classification", seed=training_seed, num_labels=2)
    numbers = original_ids(folder)

    def loss_of(model: Any, batch: Any) -> Tensor:
        logits = model(input_ids=numbers[batch.ids], attention_mask=(batch.ids != PAD).long()).logits
        return nn.functional.cross_entropy(logits, batch.labels)

    training = {**PLAIN, "batch_sentences": 13, "seed": training_seed}
    config = labelled_config(text, model={"init_from": str(folder), "dropout": 0.0}, training=training)
    assert_same_training(config, original, tmp_path / "run", loss_of)


def test_a_language_model_learns_like_a_hand_written_loop(text: Path, tmp_path: Path, training_seed: int) -> None:
    folder = tmp_path / "theirs"
    original, _ = write_folder(folder, "gpt2", "language-modeling", seed=training_seed)
    numbers = original_ids(folder)

    def loss_of(model: Any, batch: Any) -> Tensor:
        logits = model(input_ids=numbers[batch.ids]).logits
        return nn.functional.cross_entropy(logits.flatten(0, 1), numbers[batch.labels].flatten())

    training = {**PLAIN, "seed": training_seed}
    config = make_language_config(text, model={"init_from": str(folder), "dropout": 0.0}, training=training)
    assert_same_training(config, original, tmp_path / "run", loss_of)
