"""Check the functions of a project that train, decode and score.

A few training steps are traced first: their inputs, their labels, and their updates of the weights. Then
pairs are memorized and decoded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from transformer_doctor.catalogue import in_case, model_finding
from transformer_doctor.checks.labels import (
    class_findings,
    ignored_labels,
    label_findings,
    masked_label_findings,
    text_label_findings,
)
from transformer_doctor.checks.memorization import (
    TrainingFunctions,
    WithoutDropout,
    all_known,
    decoder_ids,
    least_loss,
    memorization_findings,
    memorize,
    mode_findings,
    prompt_of,
    rows_of,
    scoring_findings,
    start_findings,
)
from transformer_doctor.checks.rows import row_findings
from transformer_doctor.checks.step_tracer import StepTracer
from transformer_doctor.checks.training import (
    LENGTHS,
    UNCLEAR,
    UNREADABLE,
    TrainedBatch,
    arguments,
    read_batch,
)
from transformer_doctor.checks.trial import RANDOM_LENGTH, RANDOM_UPDATES, TRACED, Trial
from transformer_doctor.checks.updates import (
    UpdateRecord,
    first_loss_findings,
    is_fresh,
    mean_findings,
    padding_row_findings,
    update_findings,
)
from transformer_doctor.errors import UsageError
from transformer_doctor.model_adapter import ModelAdapter
from transformer_doctor.places import placed
from transformer_doctor.progress import NO_LISTENER, Listener
from transformer_doctor.report import Finding, Report, attempt, failure_report, make_report, report_on

_LABELS = "labels are the next tokens, from the first to the end mark"
_NOT_IGNORED = "the loss ignores no token of the vocabulary"
_LOSS_ABOVE_CHANCE = "on random targets the loss stays above chance"
_FIRST_LOSS = "the first loss is near that of a blind guess"
_MEAN = "the loss is divided by real tokens, not by padding"
_PADDING_ROW = "the embedding of padding is not trained"
_ROWS = "in training steps each row counts, and depends neither on other rows nor on later tokens"
_UPDATES = "every parameter that scores depend on gets a gradient and is updated, once for each update"
_SCORED = "scored outputs are decoded without the reference"
_MODE = "outputs are decoded and scored without dropout"
_MEMORIZED = "memorised pairs are decoded exactly"
TRAINING_CHECKS = (_LABELS, _NOT_IGNORED, _LOSS_ABOVE_CHANCE, _FIRST_LOSS, _MEAN, _PADDING_ROW, _UPDATES, _ROWS)

_NUM_LAST_UPDATES = 5  # updates whose mean loss is compared with chance
_GROWN_FACTOR = 3  # times the first loss, or that of a blind guess, above which a loss has grown
_LEARNED_NATS = 0.5  # nats a label below which a loss may rise again, as one that is kept above a level
_MOST_LABELS = 0.5  # share of the labels
_LEAKING = 0.95  # share of the chance loss below which labels are leaked
_CLASSES = "labels are the classes of the texts, and none is ignored"
_TOKEN_LABELS = "labels belong to tokens of the text, not to padding"
_NO_MEAN = "the labels could not be read, and the loss is no mean over tokens"
_NO_CHANCE = "chance is unknown for labels that are tokens of the text"
_MODE_UNKNOWN = "neither train_step calls train() nor this function eval(): call them around it"
_TEXT_LABELS = "in an encoder each token may depend on all others"
_NO_DECODING = "an encoder decodes nothing"
_TRAINED_BEFORE = "the model has been trained before"
# Findings that explain a loss below chance.
_EXPLAINED = {"target-not-shifted", "sees-the-future", "mask-fill", "padding-in-loss", "rows-mixed"}
# Findings that explain a gradient of the embedding of padding.
_READS_PADDING = {
    "no-source-padding-mask", "padding-mask-on-queries", "mask-as-value", "mask-fill", "depends-on-the-batch",
    "sees-the-future", "rows-mixed", "padding-in-loss", "padding-in-mean", "end-fed-to-decoder", "wrong-labels",
}  # fmt: skip


def check_training(
    adapter: ModelAdapter,
    functions: TrainingFunctions,
    report: Report,
    seed: int,
    listener: Listener = NO_LISTENER,
    in_half: UpdateRecord | None = None,
) -> Report:
    """Check training steps, decoding after training, and scoring; `in_half` is the record of half precision.

    Raises:
        UsageError: the nn.Module of the model is not available.
    """
    if adapter.module is None:
        raise UsageError(
            "train_step can be examined with a model whose nn.Module is available: give the module, or a function "
            "that names it."
        )
    trial = _TrainingTrial.of(adapter, functions, seed)
    trial.trace(listener)
    if in_half is not None:
        trial.record.in_half, trial.record.unscaled = in_half.updates, trial.record.unscaled or in_half.unscaled
    training = trial.training_report(report)
    training += trial.row_report({*report.names, *training.names})
    known = {finding.name for finding in (*report.findings, *training.findings) if finding.severity == "error"}
    if functions.score is not None:
        training += placed(attempt([_SCORED, _MODE], trial.scoring_report), functions.score)
    if functions.greedy is not None:
        training += placed(
            attempt([_MEMORIZED, _MODE], lambda: trial.decoding_report(known, listener)), functions.greedy
        )
    if "target" in adapter.sides:  # the reason of a check that was tried stays
        training += make_report([], [], [(_SCORED, "score was not given"), (_MEMORIZED, "greedy was not given")])
    return training


class _TrainingTrial(Trial):
    def training_report(self, report: Report) -> Report:
        """Return the findings of the steps, and the checks that could be made; `report` is that of the outputs."""
        labels = self.label_report()
        floor = self.loss_below_chance()
        named = {*report.names, *labels.names}
        findings = [
            replace(label_finding, evidence=f"{label_finding.evidence}; {floor}")
            if floor and label_finding.name in _EXPLAINED
            else label_finding
            for label_finding in labels.findings
        ]
        if floor and not _EXPLAINED & named:
            findings.append(model_finding("below-the-floor", floor))
        findings += self.loss_findings()
        steps = replace(labels, findings=findings)
        token_labels = "target" not in self.adapter.sides and not self.classifier
        no_floor = _NO_CHANCE if token_labels else _NO_MEAN
        steps += report_on(_LOSS_ABOVE_CHANCE, reason=no_floor if floor is None else "")
        first = self.first_cross_entropy()
        if isinstance(first, str):
            steps += report_on(_FIRST_LOSS, reason=first)
        else:
            classes = self.width if self.classifier else max(self.width, self.adapter.size(self.adapter.sides[-1]))
            steps += report_on(_FIRST_LOSS, first_loss_findings(first, classes))
        if self.adapter.pad is None:
            steps += report_on(_PADDING_ROW, reason="pad was not given")
        else:
            explained = _READS_PADDING & {*report.names, *steps.names}
            trained = [] if explained else padding_row_findings(self.record, self.adapter.pad)
            steps += report_on(_PADDING_ROW, trained)
        self.module.eval()
        return steps + attempt(
            [_UPDATES], lambda: report_on(_UPDATES, update_findings(self.adapter, self.record, self.samples))
        )

    def loss_findings(self) -> Iterator[Finding]:
        """Yield findings about a loss that is computed wrongly, whatever the labels are."""
        batches = self.record.batches.values()
        if self.normalized_twice:
            evidence = "in the training step, a cross-entropy or log_softmax reads the result of a softmax"
            yield model_finding("scores-are-probabilities", evidence, "error")
        rising = [((batch.weights < 0) & (batch.nats > _LEARNED_NATS))[batch.trained] for batch in batches]
        if 2 * sum(float(labels.float().mean()) > _MOST_LABELS for labels in rising) > len(rising):
            evidence = "the loss that is minimised falls when the labels become less likely: its sign is wrong"
            yield model_finding("not-learned", evidence, "error")
        elif any(batch.raw for batch in batches):
            least = min((loss for loss in self.losses if loss is not None), default=0)
            evidence = f"the loss is a sum of scores, not of log-probabilities: it falls to {least:.3g}"
            yield model_finding("loss-without-softmax", evidence)
        elif self.functions.greedy is None and (grown := self.grown_loss()):
            yield model_finding("not-learned", grown, "warning")

    def row_report(self, known: set[str]) -> Report:
        """Return the rows that the loss of each row depends on; a loss that is read wrongly is not asked."""
        possible, active = self.dropouts
        frozen = any(not parameter.requires_grad for parameter in self.module.parameters())
        evidence = f"{possible} dropouts of the model are active in train(), and none is in the training steps"
        idle = possible and not active and not frozen
        mode = make_report([model_finding("trained-in-evaluation-mode", evidence)] if idle else [], [])
        if "target" not in self.adapter.sides:
            return mode + report_on(_ROWS, reason=_TEXT_LABELS)
        with_padding = not known & _READS_PADDING

        def ask() -> Report:
            try:
                return report_on(_ROWS, row_findings(self, known, with_padding=with_padding))
            except Exception as error:  # the step is another one here: most of its gradient is left out
                vars(error).pop("finding", None)
                raise

        return mode + attempt([_ROWS], ask)

    def label_report(self) -> Report:
        """Return the findings about labels, and about what the loss is divided by."""
        adapter, batches = self.adapter, self.record.batches
        if self.classifier:
            labels = [finding for classes, seen, _ in self.classes for finding in class_findings(classes, seen)]
            return report_on(_CLASSES, labels, "" if self.classes else UNREADABLE)
        if "target" not in adapter.sides:
            read = [batch for number, batch in batches.items() if number < TRACED]
            tokens = [
                finding for batch in read for finding in text_label_findings(adapter, batch, masked=self.masked)
            ]
            tokens += masked_label_findings(batches.values()) if self.masked and read else []
            return report_on(_TOKEN_LABELS, tokens, "" if read else UNREADABLE)
        findings: dict[int, list[Finding]] = {0: [], 1: [], 2: []}
        if any(batch.reshaped for batch in batches.values()):
            evidence = "the loss reads the numbers of the scores in another order than the model returns them"
            findings[0].append(in_case(model_finding("wrong-labels", evidence), "labels-reshaped"))
        elif 0 in batches:
            findings[0] += label_findings(adapter, batches[0], self.own_token)
        if 0 in batches and 1 in batches:
            findings[1] += mean_findings(batches[0], batches[1])
        ignored = ignored_labels(adapter, batches[2], self.own_token) if 2 in batches else []
        if ignored:
            named = ", ".join(map(str, ignored[:3]))
            evidence = f"token {named} is never a label where it is the next token of a target; others are"
            findings[2].append(model_finding("ignored-label", evidence))
        report = Report()
        for number, check in enumerate((_LABELS, _MEAN, _NOT_IGNORED)):
            if number in self.failed:
                report += failure_report([check], self.failed[number], "note")
            else:
                made = number in batches or findings[number]
                report += report_on(check, findings[number], "" if made else UNREADABLE)
        return report

    def loss_below_chance(self) -> str | None:
        """Return the evidence if the loss on fresh random labels is below chance, empty if not, None if unknown.

        A random token costs the logarithm of the number of tokens it was drawn from. Where labels could not be
        read, the loss that the step returns is judged, if it is a mean: begin and end marks can be predicted, as
        all rows are of one length, so that (n ln V') / (n + 2) is the least a mean can honestly be.
        """
        if "target" not in self.adapter.sides:
            return self.classes_below_chance() if self.classifier else None
        known = set(self.vocabulary.target)
        tokens = torch.tensor(sorted(known))
        batches = [batch for number, batch in self.record.batches.items() if number >= TRACED]
        nats = []
        for batch in batches:
            judged = torch.isin(batch.labels, tokens)
            if not judged.any():  # sure of all tokens, and the loss has no gradient: it is 0
                judged = batch.labels == UNCLEAR
            if judged.any():
                nats.append(float(batch.nats[judged].mean()))
        if len(nats) == RANDOM_UPDATES:
            floor = math.log(max(len(known) - 1, 1))  # neighbours differ
            return _below(sum(nats[-_NUM_LAST_UPDATES:]) / _NUM_LAST_UPDATES, floor, len(nats)) if floor else None
        losses = [loss for loss in self.losses[-RANDOM_UPDATES:] if loss is not None]
        token = math.log(len(known))
        if len(losses) < RANDOM_UPDATES or not 0.5 * token < losses[0] < 10 * token:
            return None
        floor = token * RANDOM_LENGTH / (RANDOM_LENGTH + 2)
        return _below(sum(losses[-_NUM_LAST_UPDATES:]) / _NUM_LAST_UPDATES, floor, len(losses))

    def grown_loss(self) -> str | None:
        """Return the evidence that updates made the cross-entropy of the labels grow; None if not, or unknown."""
        nats = [float(batch.nats.mean()) for batch in self.record.batches.values() if batch.nats.numel()]
        if len(nats) <= RANDOM_UPDATES:
            return None
        first, last = nats[0], sum(nats[-_NUM_LAST_UPDATES:]) / _NUM_LAST_UPDATES
        if not last > _GROWN_FACTOR * max(first, math.log(self.width)):
            return None
        return (
            f"after {len(nats)} updates the cross-entropy of the labels is {last:.2f}; it was {first:.2f} at first"
        )

    def classes_below_chance(self) -> str | None:
        """Return the evidence if random classes are predicted better than chance allows, None if unknown."""
        nats = [mean for _, _, mean in self.classes]
        if len(nats) < RANDOM_UPDATES or self.width < 2:
            return None
        late = nats[-RANDOM_UPDATES // 2 :]
        return _below(sum(late) / len(late), _LEAKING**2 * math.log(self.width), len(nats))

    def first_cross_entropy(self) -> float | str:
        """Return the mean cross-entropy of the labels of the first step in nats, or why it cannot be judged."""
        if not is_fresh(self.record.updates.start):
            return _TRAINED_BEFORE
        if self.classifier:
            return self.classes[0][2] if self.classes else UNREADABLE
        batch = self.record.batches.get(0)
        return UNREADABLE if batch is None else float(batch.nats[batch.trained].mean())

    def scoring_report(self) -> Report:
        """Score a batch in eval() and in train(); report whether the reference is fed and dropout active."""
        assert self.functions.score is not None
        score = self.functions.score
        sources, targets = self.vocabulary.pairs(LENGTHS)
        batch = arguments(self.functions.collate(sources, targets))
        fed, report = self.mode_report("score", lambda: score(*batch))
        seen = self.record.batches.get(0)
        if seen is None or "target" not in self.adapter.sides:
            return report + report_on(_SCORED, reason=UNREADABLE)
        return report + report_on(_SCORED, scoring_findings(targets, decoder_ids(fed, seen.table, sources)))

    def mode_report(self, name: str, call: Callable[[], Any]) -> tuple[StepTracer, Report]:
        """Call a function in eval() and, if no dropout is active then, in train(); return the first trace."""
        tracers: dict[bool, StepTracer] = {}
        for training in (False, True):
            self.module.train(training)
            with torch.no_grad(), StepTracer(self.width) as tracer:
                call()
            tracers[training] = tracer
            if tracer.active_dropouts:
                break
        active = {training: tracer.active_dropouts for training, tracer in tracers.items()}
        if active.get(True) and not self.sets_training:
            return tracers[False], report_on(_MODE, reason=_MODE_UNKNOWN)
        return tracers[False], report_on(_MODE, mode_findings(name, active))

    def decoding_report(self, known: set[str], listener: Listener) -> Report:
        """Memorize pairs and decode them; findings that a known error explains are left out."""
        if "target" not in self.adapter.sides:
            return report_on(_MEMORIZED, reason=_NO_DECODING)
        assert self.functions.greedy is not None
        greedy, seen = self.functions.greedy, self.record.batches.get(0)
        least = least_loss(self.adapter, seen)
        self.module.train()
        with listener.phase("memorizing pairs", self.functions.updates, "updates") as advance:
            memorized = memorize(self.functions, self.vocabulary, least, advance)
        if not memorized.learned(least):
            with WithoutDropout():
                last = read_batch(self.traced_step(memorized.batch)[0], memorized.targets)
            memorized = replace(memorized, known=all_known(last))
        prompt = prompt_of(self.adapter, memorized.batch, memorized.targets)
        outputs: list[Any] = []

        def decode() -> None:
            try:
                outputs.append(rows_of(greedy(prompt)))
            except Exception:
                if not isinstance(prompt, Mapping):
                    raise
                outputs.append(rows_of(greedy(prompt["input_ids"])))

        tracer, report = self.mode_report("greedy", decode)
        starts: list[Finding] = []
        marks: list[int] = []
        if seen is not None:
            starts += start_findings(seen, decoder_ids(tracer, seen.table, memorized.sources))
            marks = _symbols_before(seen)
        known = known | {finding.name for finding in starts}
        findings = memorization_findings(memorized, outputs[0], self.adapter, least, marks, self.losses[0])
        return report + report_on(_MEMORIZED, [*starts, *([] if known else findings)])


def _symbols_before(batch: TrainedBatch) -> list[int]:
    """Return the tokens before the first target that was recognised in a batch."""
    for inputs, target in zip(batch.inputs.tolist(), batch.targets, strict=True):
        if target:
            return inputs[: inputs.index(target[0])]
    return []


def _below(loss: float, floor: float, updates: int) -> str:
    if loss >= _LEAKING * floor:
        return ""
    return f"on fresh random targets the loss is {loss:.3f} after {updates} updates; chance allows {floor:.3f}"
