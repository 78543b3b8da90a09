"""A tiny model, pairs of ids in memory, and a trainer of them with its listener and storage."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from manyheads.config.schema import ModelConfig, TrainingConfig
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.reports import Advance, SilentListener, StepReport, ValidationReport
from manyheads.tensors.pairs import Batch, make_batch
from manyheads.training.objective import Objective, translation_loss
from manyheads.training.snapshot import Snapshot
from manyheads.training.time_limit import TimedValidation
from manyheads.training.trainer import Trainer

PAD, BOS, EOS = 1, 2, 3
VOCABULARY = 23
CPU = torch.device("cpu")

Row = list[int]


def tiny_model(seed: int = 1, **settings: Any) -> EncoderDecoder:
    """Return a model in float64 with D = 16, 1 + 1 layers, and no dropout by default."""
    small = {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    torch.manual_seed(seed)
    config = ModelConfig(**(small | {"dropout": 0.0} | settings))
    return EncoderDecoder(config, VOCABULARY, VOCABULARY).double()


def translation_objective(model: EncoderDecoder, config: TrainingConfig) -> Objective:
    """Return the training objective of these settings."""
    return Objective(model, partial(translation_loss, smoothing=config.label_smoothing, r_drop=config.r_drop))


def random_pairs(count: int, seed: int = 3) -> tuple[list[Row], list[Row]]:
    """Return random sources and targets of 1 to 9 ids."""
    rng = np.random.default_rng(seed)
    both = [[rng.integers(4, VOCABULARY, rng.integers(1, 10)).tolist() for _ in range(count)] for _ in range(2)]
    return both[0], both[1]


class PairUpdates:
    """Batches of pairs in memory, determined by epoch and position."""

    def __init__(self, sources: list[Row], targets: list[Row], *, size: int = 5, parts: int = 1) -> None:
        self.sources = sources
        self.targets = targets
        self.size = size
        self.parts = parts

    def epoch(self, number: int) -> list[NDArray[np.int64]]:
        order = np.random.default_rng(number).permutation(len(self.sources))
        return [order[start : start + self.size] for start in range(0, len(order), self.size)]

    def batches(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> list[Batch]:
        assert np.array_equal(pairs, self.epoch(epoch)[position]), "the trainer passes the right epoch and position"
        return [self.batch(part) for part in np.array_split(pairs, min(self.parts, len(pairs)))]

    def batch(self, pairs: Sequence[int] | NDArray[np.int64]) -> Batch:
        sources, targets = [self.sources[pair] for pair in pairs], [self.targets[pair] for pair in pairs]
        return make_batch(sources, targets, pad=PAD, bos=BOS, eos=EOS)

    def heaviest(self) -> int:
        return 0

    def describe(self, pairs: NDArray[np.int64]) -> str:
        return f"lines {pairs.tolist()}"


class CollectingListener(SilentListener):
    """Collect the messages and reports of a training in lists."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.phases: list[tuple[str, int]] = []
        self.steps: list[StepReport] = []
        self.validations: list[ValidationReport] = []

    def message(self, text: str) -> None:
        self.messages.append(text)

    @contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        counts: list[int] = []
        yield counts.append
        self.phases.append((name, sum(counts)))

    def step(self, report: StepReport) -> None:
        self.steps.append(report)

    def validation(self, report: ValidationReport) -> None:
        self.validations.append(report)


def validation_report(
    step: int, loss: float, bleu: float | None = None, chrf: float | None = None
) -> ValidationReport:
    """Return a validation report with these figures."""
    return ValidationReport(step, loss, {"bleu": bleu, "chrf": chrf}, False, None)


class MemoryStorage:
    """Keep copies of checkpoints in a list, as (snapshot, whether best), and the best weights by step."""

    def __init__(self) -> None:
        self.saved: list[tuple[Snapshot, bool]] = []
        self.published: dict[int, dict[str, Tensor]] = {}

    def save(self, snapshot: Snapshot) -> None:
        self.saved.append((copy.deepcopy(snapshot), False))

    def confirm(self, step: int, state: Mapping[str, Any], best: Mapping[str, Tensor] | None) -> None:
        snapshot, _ = self.saved[-1]
        assert snapshot.state["progress"]["step"] == step == state["progress"]["step"]
        self.saved[-1] = replace(snapshot, state=copy.deepcopy(dict(state))), best is not None
        if best is not None:
            self.published[step] = copy.deepcopy(dict(best))

    def discard(self, step: int) -> None:
        snapshot, _ = self.saved.pop()
        assert snapshot.state["progress"]["step"] == step

    def load(self) -> Snapshot | None:
        return self.saved[-1][0] if self.saved else None


class TrainerHarness:
    """Hold a trainer of a tiny model with a listener and a storage in memory."""

    def __init__(
        self,
        model: EncoderDecoder | None = None,
        updates: PairUpdates | None = None,
        *,
        validate: Callable[[int], ValidationReport] | None = None,
        timed_validation: TimedValidation | None = None,
        prepared: float = 0.0,
        **settings: Any,
    ) -> None:
        plan = {"steps": 7, "warmup_steps": 2, "precision": "fp32", "log_every": 1, "save_every": 1_000}
        self.config = TrainingConfig(**(plan | settings))
        self.model = model or tiny_model()
        self.updates = updates or PairUpdates(*random_pairs(23))
        self.listener = CollectingListener()
        self.storage = MemoryStorage()
        self.trainer = Trainer(
            translation_objective(self.model, self.config),
            self.config,
            self.updates,
            device=CPU,
            precision="fp32",
            listener=self.listener,
            validate=validate or (lambda step: validation_report(step, 1 / max(1, step))),
            storage=self.storage,
            timed_validation=timed_validation,
            prepared=prepared,
        )

    def resume(self, storage: MemoryStorage) -> None:
        """Restore the trainer from the last checkpoint of a storage, and continue to save there."""
        self.storage.saved = storage.saved
        snapshot = self.storage.load()
        assert snapshot is not None
        self.trainer.restore(snapshot)

    @property
    def saved(self) -> list[tuple[Snapshot, bool]]:
        return self.storage.saved

    @property
    def saved_steps(self) -> list[int]:
        return [snapshot.state["progress"]["step"] for snapshot, _ in self.saved]


def record_gradients(harness: TrainerHarness) -> list[dict[str, Tensor]]:
    """Return a list to which each update adds the gradients that it is about to apply."""
    caught: list[dict[str, Tensor]] = []

    def record(*_: object) -> None:
        caught.append({name: p.grad.clone() for name, p in harness.model.named_parameters() if p.grad is not None})

    harness.trainer.updater.optimizer.register_step_pre_hook(record)
    return caught


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def pair_losses(model: EncoderDecoder, updates: PairUpdates, smoothing: float) -> Iterator[tuple[Tensor, int]]:
    """Yield the loss of each pair alone, without padding, by torch's own function, and its target tokens."""
    for source, target in zip(updates.sources, updates.targets, strict=True):
        logits = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))[0]
        labels = torch.tensor([*target, EOS])
        yield functional.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum"), len(labels)


def logged_figures(harness: TrainerHarness) -> list[tuple[float, ...]]:
    """Return the figures of each log point that do not depend on the clock."""
    return [
        (r.step, r.epoch, r.loss, r.nll, r.learning_rate, r.gradient_norm, r.padding, r.skipped)
        for r in harness.listener.steps
    ]
