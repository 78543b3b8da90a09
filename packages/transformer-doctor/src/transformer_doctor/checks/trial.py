"""Make training steps of a project on constructed batches, and record them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from transformer_doctor.checks.dependence import depends_on_own_token
from transformer_doctor.checks.memorization import TrainingFunctions, as_number
from transformer_doctor.checks.step_tracer import StepTracer
from transformer_doctor.checks.training import (
    LENGTHS,
    Vocabulary,
    arguments,
    hidden_texts,
    read_batch,
    read_classes,
    token_rows,
)
from transformer_doctor.checks.update_tracer import UpdateTracer
from transformer_doctor.checks.updates import UpdateRecord
from transformer_doctor.model_adapter import ModelAdapter, Samples, restore_weights
from transformer_doctor.preparation import half_precision, without_moments
from transformer_doctor.progress import Listener

_UNEVEN = (2, 2, 8, 2)  # tokens of the targets of a batch with much padding
_RANDOM_PAIRS, RANDOM_LENGTH, RANDOM_UPDATES = 8, 6, 40
TRACED = 3  # steps before the random ones
_MOST_CALLS = 4  # steps until an update, where gradients are accumulated
_SCALED = 64  # sum of the weights of a mean loss from which on it was scaled for half precision
_MOST_CLASSES = 16  # classes that are tried as labels


def _estimate(functions: TrainingFunctions, seconds: float) -> str:
    updates = TRACED + RANDOM_UPDATES + (functions.updates if functions.greedy is not None else 0)
    return f"about {updates * seconds:.0f} s: {updates} updates"


@dataclass
class Trial:
    """Training steps of a project on constructed batches.

    Attributes:
        adapter: the model.
        functions: the functions of the project.
        samples, vocabulary: ids to call the model with, and to train it with.
        width: width of the scores.
        classifier: whether the scores are those of a class of each text.
        own_token: whether a score depends on the token that is looked up at its position, None if unknown.
        record: gradients, updates, and the batches that could be read.
        losses: losses that the steps returned, None for one that is no number.
        classes: for each step of a classifier, its classes, its labels as read, and their mean cross-entropy.
        failed: by the number of a step, the exception that it raised.
        sets_training: whether the step itself calls train().
        dropouts: number of dropouts that the model makes active in train(), and the most of a step.
        normalized_twice: whether a loss with a softmax read the result of another one.
    """

    adapter: ModelAdapter
    functions: TrainingFunctions
    samples: Samples
    vocabulary: Vocabulary
    width: int
    classifier: bool
    own_token: bool | None
    record: UpdateRecord
    losses: list[float | None] = field(default_factory=list)
    classes: list[tuple[list[int], Tensor, float]] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)
    sets_training: bool = False
    dropouts: tuple[int, int] = (0, 0)
    normalized_twice: bool = False

    @classmethod
    def of(cls, adapter: ModelAdapter, functions: TrainingFunctions, seed: int) -> Self:
        """Return the trial of a model, before any step."""
        assert adapter.module is not None
        adapter.module.eval()
        samples = Samples(adapter, seed)
        ids = samples.ids()
        with torch.no_grad(), StepTracer(module=adapter.module) as tracer:
            scores = adapter(ids)
        adapter.module.train()
        with suppress(Exception), torch.no_grad(), StepTracer() as training:  # in train() a model may want more
            adapter(ids)
        adapter.module.eval()
        writes = "target" in adapter.sides
        return cls(
            adapter,
            functions,
            samples,
            Vocabulary(adapter, seed),
            scores.size(-1),
            not writes and scores.size(1) == 1,
            True if writes and _looks_up_shifted(tracer, ids["target"]) else depends_on_own_token(adapter, samples),
            UpdateRecord(UpdateTracer.of(adapter.module)),
            dropouts=(training.active_dropouts, 0),
        )

    @property
    def module(self) -> nn.Module:
        """Return the module of the model, without which there is no trial."""
        assert self.adapter.module is not None
        return self.adapter.module

    @property
    def masked(self) -> bool:
        """Return whether an encoder scores all tokens at each position, as a masked language model does."""
        reads = "target" not in self.adapter.sides and not self.classifier
        return reads and self.width == self.adapter.size("source")

    def step_rows(self) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
        """Yield the sources and targets of each step."""
        vocabulary, random = self.vocabulary, [[RANDOM_LENGTH] * _RANDOM_PAIRS] * RANDOM_UPDATES
        if "target" in self.adapter.sides:
            pairs = [vocabulary.pairs(lengths) for lengths in (LENGTHS, _UNEVEN, *random)]
            yield from (*pairs[:2], vocabulary.pairs_of_special_ids(), *pairs[2:])
            return
        special = [len(LENGTHS)] * min(self.width, _MOST_CLASSES) if self.classifier else LENGTHS
        for number, lengths in enumerate((LENGTHS, _UNEVEN, special, *random)):
            sources, _ = vocabulary.pairs(lengths)
            if self.classifier:
                drawn = torch.randint(self.width, (len(lengths),), generator=vocabulary.generator).tolist()
                classes = range(len(lengths)) if number == TRACED - 1 else drawn  # every class once
                yield sources, [[label] for label in classes]
            elif self.masked:
                yield sources, sources
            else:
                yield sources, [[token % self.width for token in row] for row in sources]

    def trace(self, listener: Listener) -> None:
        """Make the steps, and record them; the first one begins in eval()."""
        total = TRACED + RANDOM_UPDATES
        with self.record.updates.watch(), listener.phase("training", total, "updates") as advance:
            for number, (sources, targets) in enumerate(self.step_rows()):
                started = time.perf_counter()
                try:
                    self.make_step(sources, targets)
                except Exception as error:
                    if number not in (1, 2):  # batches of an unusual kind may be refused
                        raise
                    self.failed[number] = error
                    self.record.calls += 1
                if number == 0:
                    self.sets_training = self.module.training
                    self.module.train()
                    listener.message(
                        f"training checks: {_estimate(self.functions, time.perf_counter() - started)}; quick=True "
                        "(--quick) leaves them out"
                    )
                advance(1)

    def traced_step(
        self, batch: Sequence[Any], keep: Mapping[int, Tensor] | None = None
    ) -> tuple[StepTracer, float | None]:
        """Make a step on the arguments of a batch; return its trace and its loss. `keep`: see `StepTracer`."""
        widths = self.width if self.classifier else self.adapter.size(self.adapter.sides[-1]), self.width
        with StepTracer(*widths, module=self.module, updates=self.record.updates, keep=keep) as tracer:
            loss = as_number(self.functions.train_step(*batch))
        return tracer.of_first_width(), loss

    def make_step(self, sources: list[list[int]], targets: list[list[int]]) -> None:
        """Make a step on a batch, and record it."""
        tracer, loss = self.traced_step(arguments(self.functions.collate(sources, targets)))
        self.losses.append(loss)
        self.normalized_twice |= tracer.probabilities > 0
        if self.record.calls > 1:  # the second step begins in train(), whatever the first one left
            self.dropouts = self.dropouts[0], max(self.dropouts[1], tracer.active_dropouts)
        if self.classifier:
            read = read_classes(tracer, len(targets))
            if read is not None:
                self.classes.append(([row[0] for row in targets], *read[:2]))
                self.record.totals.setdefault(read[2].update, []).append((read[3], 1))
        writes = "target" in self.adapter.sides
        known = targets if writes else hidden_texts(tracer, sources) if self.masked else sources
        seen = None if self.classifier else read_batch(tracer, known)
        if seen is not None and self.masked and len(seen.inputs) == len(sources):
            seen = replace(seen, targets=sources)
        texts = [row for row in (*sources, *targets) if len(row) > 1]
        tokens = [fed for fed in tracer.fed if token_rows(fed.ids, texts, None) is not None]
        of_sources = [fed for fed in tokens if token_rows(fed.ids, sources, None) is not None]
        ends = self.adapter.pad == self.adapter.eos
        self.record.add(tokens, of_sources, seen, self.adapter.pad, ends=ends)
        half = any(score.gradient is not None and score.gradient.dtype == torch.float16 for score in tracer.scores)
        self.record.unscaled |= half and seen is not None and 0 < float(seen.weights.sum()) < _SCALED


def trace_half_precision(adapter: ModelAdapter, functions: TrainingFunctions, seed: int) -> UpdateRecord | None:
    """Return the record of an update in half precision, None for a model in another one or a step that fails."""
    if half_precision(adapter.module) is None:
        return None
    with restore_weights(adapter.module), without_moments(), torch.enable_grad():
        trial = Trial.of(adapter, functions, seed)
        sources, targets = next(trial.step_rows())
        try:
            with trial.record.updates.watch():
                while trial.record.calls < _MOST_CALLS and not trial.record.updates.count:
                    trial.make_step(sources, targets)
        except Exception:  # any exception of the user's code; the steps of the trial raise it again
            return None
    return trial.record


def _looks_up_shifted(tracer: StepTracer, target: Tensor) -> bool:
    """Return whether the ids of a target (B, T) were looked up one position later than given, as in T5."""
    expected, length = target.cpu(), target.size(1)
    for ids in (fed.ids.cpu() for fed in tracer.fed if fed.table and fed.ids.dim() == 2):
        rows = ids if len(ids) == len(expected) else ids.t()
        if torch.equal(rows[:, 1:length], expected[:, :-1]):
            return not torch.equal(rows[:, :length], expected)
    return False
