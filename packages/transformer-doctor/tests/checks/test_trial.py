"""The trial makes batches for every kind of model, estimates its time, and records the losses of the steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from specimens.planted import BOS, EOS, PAD, VOCABULARY, Trainer, Transformer
from transformer_doctor.checks.memorization import TrainingFunctions
from transformer_doctor.checks.trial import RANDOM_UPDATES, TRACED, Trial, _estimate
from transformer_doctor.model_adapter import ModelAdapter
from transformer_doctor.progress import Advance, SilentListener


class ProgressRecorder(SilentListener):
    def __init__(self) -> None:
        self.messages: list[str] = []
        self.updates = 0

    def message(self, text: str) -> None:
        self.messages.append(text)

    @contextlib.contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        def advance(count: int = 1) -> None:
            self.updates += count

        yield advance


def trial() -> Trial:
    torch.manual_seed(0)
    model = Transformer()
    trainer = Trainer(model)
    adapter = ModelAdapter("encoder-decoder", model, model, (VOCABULARY, VOCABULARY), PAD, BOS, EOS)
    return Trial.of(adapter, TrainingFunctions(trainer.step, trainer.collate, trainer.greedy, None, 100), 0)


def test_an_estimate_counts_all_updates() -> None:
    assert _estimate(trial().functions, 0.5) == "about 72 s: 143 updates"


def test_every_batch_is_trained_once_and_the_progress_is_reported() -> None:
    made, listener = trial(), ProgressRecorder()
    assert len(list(made.step_rows())) == TRACED + RANDOM_UPDATES
    made.trace(listener)
    assert len(made.losses) == made.record.updates.count == listener.updates == TRACED + RANDOM_UPDATES
    assert all(isinstance(loss, float) for loss in made.losses)
    assert len(listener.messages) == 1
    assert "--quick" in listener.messages[0]


def test_sources_and_targets_have_no_token_in_common() -> None:
    """Otherwise the inputs of decoder and encoder could not be distinguished."""
    for sources, targets in list(trial().step_rows())[:2]:
        assert not {token for row in sources for token in row} & {token for row in targets for token in row}
