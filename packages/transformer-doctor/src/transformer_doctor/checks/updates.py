"""Check how a training step updates the weights: gradients, their accumulation, and what the loss is divided by.

Shapes: B batch, T length of the decoder's input, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from transformer_doctor.catalogue import CATALOGUE, in_case, model_finding
from transformer_doctor.checks.step_tracer import FedIds
from transformer_doctor.checks.training import TrainedBatch
from transformer_doctor.checks.update_tracer import UpdateTracer
from transformer_doctor.checks.watched_optimizer import accumulation_fault, listed
from transformer_doctor.errors import UsageError
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.module_state import held_tensors
from transformer_doctor.report import Finding
from transformer_doctor.tolerances import relative_change

# Smallest change of the scores, as a share of their spread, when a parameter that matters is redrawn.
_MATTERS = {torch.float32: 1e-3, torch.float64: 1e-3}
_MATTERS_IN_HALF = 5e-2
_FAINT = 1e-6  # share of the largest gradient up to which that of padding comes from a finite mask fill
_MIN_SHARE = 0.9  # share of the positions from which on they are taken for all
_SAME_WEIGHT = 0.04  # relative difference of two weights of positions that pass for equal
_LOST_SHARE, _UNEQUAL = 0.9, 1.05  # share of the weights; ratio of the labels of two micro-batches
_SAME_SUM = 1.04  # ratio of the weights of two micro-batches that pass for equal
_LEAST_EXCESS, _EXCESS_SHARE = 1.5, 0.3  # nats above ln V, and share of ln V, that a first loss may be above ln V


@dataclass
class UpdateRecord:
    """Observations of a number of training steps.

    Attributes:
        updates: gradients and updates of the parameters.
        batches: inputs and labels by the number of the step; steps that could not be read are missing.
        calls: number of steps.
        padded: by table, the largest gradient of the embedding of padding, and of any embedding.
        source_padding: largest gradient of padded source positions, as a share of the largest one.
        totals: by the number of the update, sum and number of the weights of each forward pass before it.
        unscaled: whether gradients of the scores are float16, and the loss is not multiplied by a large number.
        in_half: updates in the weights' own precision, where it is half precision.
    """

    updates: UpdateTracer
    batches: dict[int, TrainedBatch] = field(default_factory=dict)
    calls: int = 0
    padded: dict[int, tuple[float, float]] = field(default_factory=dict)
    source_padding: float = 0.0
    totals: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    unscaled: bool = False
    in_half: UpdateTracer | None = None

    def add(
        self, tokens: Sequence[FedIds], sources: Sequence[FedIds], batch: TrainedBatch | None, pad: int | None,
        *, ends: bool = False,
    ) -> None:  # fmt: skip
        """Add the observations of a step: lookups of tokens, lookups of sources, inputs and labels.

        The first padding of a row `ends` its text where the end mark has the same id.
        """
        if batch is not None:
            self.batches[self.calls] = batch
            rows = [part.rows for part in batch.parts]
            for part, weights in zip(batch.parts, batch.weights.split(rows), strict=True):
                self.totals.setdefault(part.update, []).append((float(weights.sum()), int((weights > 0).sum())))
        self.calls += 1
        for fed in tokens if pad is not None else ():
            if fed.gradient is None:
                continue
            padded = fed.ids.eq(-1 if pad is None else pad)
            padded[0], padded[:, 0] = False, False  # the start, batch first or time first
            if ends:  # batch first or time first
                padded &= padded.roll(1, 0) & padded.roll(1, 1)
            gradients = fed.gradient[padded.to(fed.gradient.device)]
            at_padding, largest = float(gradients.max()) if gradients.numel() else 0.0, float(fed.gradient.max())
            trained = 0.0 if fed.padding_idx == pad else at_padding
            known = self.padded.get(fed.table, (0.0, 0.0))
            self.padded[fed.table] = max(known[0], trained), max(known[1], largest)
            if any(fed is lookup for lookup in sources):
                self.source_padding = max(self.source_padding, at_padding / (largest or 1.0))


def update_findings(adapter: ModelAdapter, record: UpdateRecord, samples: Samples) -> Iterator[Finding]:
    """Yield findings about parameters that are not trained, and about gradients that accumulate."""
    updates, changed = record.updates, set(record.updates.changed)
    names = list(updates.parameters)
    steps = f"{record.calls} training steps"
    rates = {name: updates.rates.get(id(parameter), 0.0) for name, parameter in updates.parameters.items()}
    # in half precision small updates are lost
    unchanged = [
        name for name in names
        if name not in changed and not (rates[name] > 0 and updates.parameters[name].itemsize <= 2)
    ]  # fmt: skip
    warming = updates.rate_grows and not any(rates[name] == 0 for name in unchanged)
    if warming and not changed:
        raise UsageError(f"the learning rate still grows, and is too small in {steps}: {max(rates.values()):.2g}")
    if not changed:
        why = _reason_unchanged(updates, names, rates)
        yield model_finding("parameters-not-updated", f"in {steps} none of {len(names)} parameters changes{why}")
        return
    untouched = [name for name in names if name not in updates.reached]
    module, ids = adapter.module, samples.ids()
    assert module is not None
    used = [
        name for name in untouched if scores_depend_on([updates.parameters[name]], module, lambda: adapter(ids))
    ]
    if used:
        in_optimizer = any(id(updates.parameters[name]) in updates.rates for name in used)
        evidence = f"{len(used)} of {len(names)} parameters ({listed(used)}) get no gradient in {steps}"
        evidence += ", though scores depend on them"
        yield model_finding("parameters-without-gradient", evidence, "error" if in_optimizer else "warning")
    chosen = any(not weight.requires_grad for weight in module.parameters())
    if chosen and not used and 2 * len(untouched) > len(names):
        evidence = f"{len(untouched)} of {len(names)} parameters ({listed(untouched)}) get no gradient in {steps}"
        evidence += ", no score depends on them, and others are frozen"
        yield in_case(model_finding("parameters-without-gradient", evidence), "adapters-unused")
    unchanged = [name for name in unchanged if name in updates.reached]
    if unchanged and not warming:
        why = _reason_unchanged(updates, unchanged, rates)
        evidence = f"{len(unchanged)} of {len(names)} parameters ({listed(unchanged)}) get gradients"
        yield model_finding("parameters-not-updated", f"{evidence}, but do not change in {steps}{why}", "warning")
    added = [name for name in names if name in updates.left_over & changed]
    if added:
        evidence = f"{len(added)} of {len(names)} parameters ({listed(added)}) still hold the gradient of an update"
        yield model_finding("gradients-accumulated", f"{evidence} when that of the next one comes")
    current = dict(module.named_parameters())
    replaced = [name for name in names if current.get(name) is not updates.parameters[name]]
    if replaced:
        evidence = f"{len(replaced)} of {len(names)} parameters ({listed(replaced)}) are other ones after {steps}"
        yield model_finding("weights-redrawn", evidence)
    for finding in updates.told.findings.values():
        if finding.name != "parameters-not-updated":  # judged above, where every step was observed
            yield replace(finding, check=CATALOGUE[finding.name].check)
    yield from _accumulation_findings(record)
    yield from _lost_in_half_precision(record)


def _lost_in_half_precision(record: UpdateRecord) -> Iterator[Finding]:
    updates = record.updates
    half = record.in_half
    rates = [max(tracer.rates.values(), default=0.0) for tracer in (updates, half) if tracer is not None]
    if half is not None and half.lost > _LOST_SHARE * half.moving > 0 and rates[0] <= 2 * rates[-1]:
        evidence = (
            f"{half.lost} of {half.moving} weights with a gradient keep their value: an update by {rates[-1]:.2g}"
        )
        yield model_finding("lost-in-half-precision", f"{evidence} is less than half a unit of their last place")
    elif record.unscaled:
        evidence = "gradients are float16, and the loss is not multiplied before the backward pass"
        yield model_finding("lost-in-half-precision", evidence)


def _reason_unchanged(updates: UpdateTracer, names: Sequence[str], rates: Mapping[str, float]) -> str:
    """Return a clause on why parameters do not change: no optimizer holds them, or its rate is too small."""
    if not updates.count:
        return ""
    held = [name for name in names if id(updates.parameters[name]) in updates.rates]
    if len(held) < len(names):
        return "; no optimizer holds them"
    rate = max(rates[name] for name in held)
    return f"; their learning rate is {rate:.2g}" + (", too small to change them" if rate else "")


@torch.no_grad()
def scores_depend_on(weights: Sequence[Tensor], module: nn.Module, scores: Callable[[], Tensor]) -> bool:
    """Return whether other values of some weights of a module, drawn with the same deviation, change the scores."""
    chosen, generator = {id(weight) for weight in weights}, torch.Generator().manual_seed(0)

    def other(weight: Tensor) -> Tensor | None:
        if id(weight) not in chosen:
            return None
        deviation = float(weight.data.float().std()) if weight.numel() > 1 else 0.0
        noise = torch.randn(weight.shape, generator=generator) * (deviation or 1.0)
        return weight.data + noise.to(weight.data)

    before = scores()
    with held_tensors(module, other):
        return relative_change(before, scores()) > _MATTERS.get(weights[0].dtype, _MATTERS_IN_HALF)


def _accumulation_findings(record: UpdateRecord) -> Iterator[Finding]:
    accumulated = [
        totals for update, totals in record.totals.items()
        if update < record.updates.count and 1 < record.updates.passes.get(update, 0) == len(totals)
    ]  # fmt: skip
    counts = {len(totals) for totals in accumulated}
    sums = [total for totals in accumulated for total, _ in totals]
    if len(counts) > 1 and max(sums) < _SAME_SUM * min(sums) and max(counts) * min(sums) > _SAME_SUM:
        evidence = f"each micro-batch weighs {min(sums):.2g}, if there are {min(counts)} of them or {max(counts)}"
        yield model_finding("accumulation-not-divided", evidence)
        return
    for fault in (accumulation_fault(totals, _UNEQUAL) for totals in accumulated):
        if fault is not None:
            yield model_finding(*fault)
            return


def mean_findings(even: TrainedBatch, uneven: TrainedBatch) -> Iterator[Finding]:
    """Yield a finding if the loss is divided by all positions, padding too.

    The weights of a token in two batches are compared: in a mean over real tokens they are inversely proportional
    to the number of real tokens, in a mean over all positions to B x T.
    """
    numbers = []
    for batch in (even, uneven):
        rows = batch.parts[0].rows
        trained, weights = batch.trained[:rows], batch.weights[:rows]
        if not trained.any():
            return
        usual = float(weights[trained].median())
        same = (weights[trained] / usual - 1).abs() < _SAME_WEIGHT
        if usual <= 0 or same.float().mean() < _MIN_SHARE:
            return
        numbers.append((usual, int(trained.sum()), rows, batch.inputs.size(1)))
    (weight, real, rows, length), (other_weight, other_real, other_rows, other_length) = numbers
    ratio = other_weight / weight
    if any(_close(ratio, sound) for sound in (1.0, real / other_real, rows / other_rows)):
        return
    for scored in (0, 1):  # labels may be scored from the second input on
        positions, others = rows * (length - scored), other_rows * (other_length - scored)
        if _close(ratio, positions / others):
            evidence = f"a token weighs 1 / {positions} in a batch of {real} labels and {positions} positions, and"
            evidence += f" {ratio:.2f} of that in one of {other_real} labels and {others} positions"
            yield model_finding("padding-in-mean", evidence)
            return


def _close(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=_SAME_WEIGHT)


def padding_row_findings(record: UpdateRecord, pad: int) -> Iterator[Finding]:
    """Yield a finding if embeddings of padding get a gradient, or the loss reads them at the source."""
    names = {id(parameter): name for name, parameter in record.updates.parameters.items()}
    for table, (trained, largest) in record.padded.items():
        if trained > _FAINT * largest:
            evidence = f"row {pad} (padding) of {names.get(table, 'an embedding')} gets a"
            evidence += f" gradient of up to {trained:.2g}, other rows of up to {largest:.2g}"
            yield model_finding("padding-row-trained", evidence)
            return
    if record.source_padding > _FAINT:
        evidence = (
            f"in the training step, the gradient by padded source positions is up to {record.source_padding:.2g} "
            "of the largest one, though the model masks them when it is called with ids alone"
        )
        yield model_finding("no-source-padding-mask", evidence)


def first_loss_findings(nats: float, classes: int) -> Iterator[Finding]:
    """Yield a finding if the first cross-entropy is far above that of a blind guess."""
    blind = math.log(classes)
    if nats > blind + max(_LEAST_EXCESS, _EXCESS_SHARE * blind):
        evidence = f"the first cross-entropy is {nats:.2f} nats a label; a blind guess has"
        yield model_finding("first-loss-too-high", f"{evidence} ln {classes} = {blind:.2f}")


def is_fresh(weights: Mapping[str, Tensor]) -> bool:
    """Return whether weights have not been trained: vectors that initialisers fill with a constant are still so."""
    vectors = [weight for weight in weights.values() if weight.dim() == 1 and weight.numel() > 1]
    return any(bool((vector == vector[0]).all()) for vector in vectors)
