"""Find the inputs that the loss of a row depends on, by training steps in which one position alone has a gradient.

A hook sets the gradient of all other scores to zero. Then a gradient reaches the embeddings of exactly those tokens
that the score of this position depends on: earlier tokens of its target, and its source. The step runs as it is.

Shapes: B batch, T length of the decoder's input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.memorization import WithoutDropout
from transformer_doctor.checks.step_tracer import StepTracer
from transformer_doctor.checks.training import (
    BEGIN,
    LENGTHS,
    UNREADABLE,
    Rows,
    TrainedBatch,
    arguments,
    read_batch,
    start_of,
    token_rows,
)
from transformer_doctor.checks.trial import Trial
from transformer_doctor.errors import UsageError
from transformer_doctor.model_adapter import restore_weights, seed_generators
from transformer_doctor.module_state import filled_zero_weights
from transformer_doctor.report import Finding
from transformer_doctor.tolerances import NO_GRADIENT, SAME_NATS

_start_of = partial(start_of, reverse=True)
_DRAWS = 50  # of rows until they can be told apart
_COPIES = 7  # of a row, another number than that of its tokens
_SAME_NATS_IN_HALF = 0.1  # as `SAME_NATS`, for scores in half precision
_OTHER_WAY = "the loss reaches the embeddings by another way than the scores"
_FROZEN = "no gradient reaches the embeddings"


@dataclass
class _Reach:
    """Numbers of the texts that a loss depends on: its own target, sources, other targets, and targets of its row.

    `later` is the number of later tokens of its own row.
    """

    own: int
    sources: set[int] = field(default_factory=set)
    targets: set[int] = field(default_factory=set)
    packed: set[int] = field(default_factory=set)
    later: int = 0


def row_findings(trial: Trial, known: set[str], *, with_padding: bool) -> Iterator[Finding]:
    """Yield findings about rows of a training step, with padding only where no finding explains its effect.

    `known` are the names of findings made before.

    Raises:
        UsageError: the labels cannot be read, or the loss is not computed from the scores alone.
    """
    sources, targets = _distinct_pairs(trial)
    trial.module.train()
    with restore_weights(trial.module), WithoutDropout():
        read = _read(trial, sources, targets)
        if read is None or not read.places:
            raise UsageError(UNREADABLE)
        yield from _left_out(read, targets)
        batch = arguments(trial.functions.collate(sources, targets))
        nothing = _trace(trial, batch, _kept(read, -1, -1))
        gradients = [strength for _, strength, _ in _lookups(nothing, sources, targets)]
        if read.reshaped or not gradients or any(bool(strength.any()) for strength in gradients):
            raise UsageError(_OTHER_WAY if gradients else _FROZEN)
        findings = [] if "no-positions" in known else list(_position_findings(trial, nothing))
        reaches = []
        for row, position, own in _positions(read, targets):
            lookups = _lookups(_trace(trial, batch, _kept(read, row, position)), sources, targets)
            reaches.append(_reach(lookups, sources, targets, (row, position, own)))
        trained = [fed for fed in nothing.fed if fed.gradient is not None]  # not those of frozen embeddings
        reads = any(token_rows(fed.ids, sources) is not None for fed in trained)
        reads &= trial.adapter.kind == "encoder-decoder" and "parameters-without-gradient" not in known
        findings += _reach_findings(reaches, reads_sources=reads, separated=bool(trial.adapter.marks))
        yield from (finding for finding in findings if finding.name not in known)
        if not findings and with_padding:
            row_trained = "padding-row-trained" in known
            yield from _padding_findings(trial, read, sources, targets, row_trained=row_trained)


def _distinct_pairs(trial: Trial) -> tuple[list[list[int]], list[list[int]]]:
    """Return sources and targets none of which holds the beginning of another one."""
    for _ in range(_DRAWS):
        pairs = trial.vocabulary.pairs(LENGTHS)
        if not any(_start_of(row, other[:BEGIN]) >= 0 for rows in pairs for row, other in permutations(rows, 2)):
            return pairs
    raise UsageError("there are too few token ids to tell rows apart")


def _read(trial: Trial, sources: Rows, targets: Rows, seed: int = 0) -> TrainedBatch | None:
    rows = [[list(row) for row in texts] for texts in (sources, targets)]
    return read_batch(_trace(trial, arguments(trial.functions.collate(*rows)), seed=seed), targets)


@torch.no_grad()
def _trace(
    trial: Trial, batch: Sequence[Any], keep: Mapping[int, Tensor] | None = None, seed: int = 0
) -> StepTracer:
    """Return the trace of a step that begins with the weights of before the training."""
    for name, value in trial.record.updates.start.items():
        trial.record.updates.parameters[name].copy_(value)
    seed_generators(seed)  # each step of one seed shuffles alike
    with torch.enable_grad(), filled_zero_weights(trial.module):  # a layer of zeros lets no gradient through
        return trial.traced_step(batch, keep)[0]


def _kept(read: TrainedBatch, row: int, position: int) -> Mapping[int, Tensor]:
    """Return masks of the scores at one position of a row, by the number of the scores; of none for row -1."""
    masks = {}
    for order, first, shape, places in read.places:
        mask = torch.zeros(shape.numel() + 1)
        if first <= row < first + len(places):
            mask[places[row - first, position]] = 1
        masks[order] = mask[1:].view(shape)
    return masks


def _positions(read: TrainedBatch, targets: Rows) -> Iterator[tuple[int, int, int]]:
    """Yield row, a position in the middle of its last target, and the number of this target."""
    for row, inputs in enumerate(read.inputs.tolist()):
        start, own = max((_start_of(inputs, text[:BEGIN]), own) for own, text in enumerate(targets))
        trained = read.trained[row, start : start + len(targets[own])].nonzero()[:, 0].tolist()
        if start >= 0 and trained:
            yield row, start + trained[(len(trained) - 1) // 2], own


def _lookups(tracer: StepTracer, sources: Rows, targets: Rows) -> Iterator[tuple[Tensor, Tensor, bool]]:
    """Yield looked-up rows of tokens, where they have a gradient, and whether they hold targets."""
    known = [(fed.ids, fed.gradient) for fed in tracer.fed if fed.table and fed.gradient is not None]
    largest = max((float(gradient.max()) for _, gradient in known), default=0.0)
    for ids, gradient in known:
        rows = token_rows(ids, [*sources, *targets])
        if rows is not None:
            strength = gradient.cpu() > NO_GRADIENT * largest
            turned = not torch.equal(ids.cpu(), rows)
            yield rows, strength.t() if turned else strength, token_rows(ids, targets) is not None


def _reach(
    lookups: Iterator[tuple[Tensor, Tensor, bool]], sources: Rows, targets: Rows, place: tuple[int, int, int]
) -> _Reach:
    row, position, own = place
    reach, passed = _Reach(own), 0
    for rows, strength, of_targets in lookups:
        for index, ids in enumerate(rows.tolist(), passed):
            found, here = strength[index - passed], of_targets and index == row
            reach.later += int(found[position + 1 :].sum()) if here else 0
            for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
                others = reach.packed if here else reach.targets
                for reached, text, length in ((reach.sources, source, None), (others, target, BEGIN)):
                    start = _start_of(ids, text[:length])
                    if start >= 0 and bool(found[start : start + len(text)].any()):
                        reached.add(number)
        passed += len(rows) * of_targets
    reach.targets.discard(own)
    reach.packed.discard(own)
    return reach


def _reach_findings(reaches: Sequence[_Reach], *, reads_sources: bool, separated: bool) -> Iterator[Finding]:
    """Yield findings about what the losses of rows depend on."""
    step, count = "in the training step, the loss", len(reaches)
    later = [reach.later for reach in reaches if reach.later]
    mixed = sum(bool(reach.targets or (reach.own in reach.sources and len(reach.sources) > 1)) for reach in reaches)
    strange = sum(bool(reach.sources) and reach.own not in reach.sources for reach in reaches)
    packed = max((len(reach.packed) for reach in reaches), default=0)
    if later:
        evidence = f"{step} of {len(later)} of {count} rows has a gradient by up to {max(later)} later tokens"
        yield model_finding("sees-the-future", evidence)
        return
    if mixed:
        evidence = f"{step} of {mixed} of {count} rows has a gradient by tokens of other rows"
        yield model_finding("depends-on-the-batch", evidence)
    if strange:
        evidence = f"{step} of {strange} of {count} rows has a gradient by another row's source, and not by its own"
        yield model_finding("sources-mixed-up", evidence)
    if reaches and reads_sources and not any(reach.sources for reach in reaches):
        yield model_finding("source-not-read", f"{step} has no gradient by any source token")
    if packed and separated:  # by marks; a stream of characters is one text
        yield model_finding("packed-texts-mixed", f"{step} of a text has a gradient by {packed} others of its row")


def _position_findings(trial: Trial, tracer: StepTracer) -> Iterator[Finding]:
    """Yield a finding if a table or module that gets 0, 1, 2, ... elsewhere gets one number in the step."""
    trial.module.eval()  # in train() the model itself may set the positions of the step
    with torch.no_grad(), StepTracer(module=trial.module) as usual:
        trial.adapter(trial.samples.ids())
    trial.module.train()
    several = [fed for fed in usual.fed if fed.ids.dim() and fed.ids.size(-1) > 1]
    counted = {fed.reader for fed in several if bool((fed.ids.diff(dim=-1) == 1).all())}
    constant = {fed.reader for fed in several if len(fed.ids.unique()) == 1}  # a second look-up
    read = [fed for fed in tracer.fed if fed.reader in counted - constant and fed.ids.numel() > 1]
    same = [int(fed.ids.flatten()[0]) for fed in read if len(fed.ids.unique()) == 1]
    if same:
        evidence = f"in the training step, every position gets the number {same[0]}"
        yield model_finding("no-positions", evidence, "error")


def _left_out(read: TrainedBatch, targets: Rows) -> Iterator[Finding]:
    """Yield a finding if a target is fed, and stands in no row with a label."""
    # by labels too, as inputs may be replaced
    labelled = [*read.inputs[read.trained.any(1)].tolist(), *read.labels.tolist()]
    fed = [row for inputs in (read.inputs, *read.without_gradient) for row in inputs.tolist()]
    numbers = [
        {number for number, text in enumerate(targets) if any(_start_of(row, text[:BEGIN]) >= 0 for row in rows)}
        for rows in (fed, labelled)
    ]
    missing = len(numbers[0] - numbers[1])
    if missing:
        evidence = f"{missing} of {len(targets)} rows of a batch have no label in the loss"
        yield model_finding("rows-left-out", evidence)


def _padding_findings(
    trial: Trial, read: TrainedBatch, sources: Rows, targets: Rows, *, row_trained: bool
) -> Iterator[Finding]:
    """Yield a finding if the cross-entropies of a row change when its neighbours are as short as the row.

    A trained row of padding explains it (`row_trained`), unless padding stands before the texts.
    """
    pad = trial.adapter.pad
    left = pad is not None and bool(read.inputs[:, :2].eq(pad).all(1).any())
    if pad is None or len(read.inputs) != len(targets) or (row_trained and not left):
        return
    short = min(range(len(targets)), key=lambda row: len(targets[row]))
    # it differs where a step draws numbers, as for a dropout of its own
    again = _read(trial, sources, targets, seed=1)
    alone = _read(trial, [sources[short]] * _COPIES, [targets[short]] * _COPIES)
    if again is None or alone is None or targets[short] not in read.targets:
        return
    if not torch.equal(again.nats, read.nats):
        return
    at = read.targets.index(targets[short])
    beside, own = read.nats[at][read.trained[at]], alone.nats[0][alone.trained[0]]
    count = min(len(beside), len(own))
    beside, own = beside[-count:], own[-count:]
    same = SAME_NATS if read.exact else _SAME_NATS_IN_HALF
    if count and not torch.allclose(beside, own, atol=same, rtol=same):
        means = float(beside.mean()), float(own.mean())
        evidence = f"in the training step, the mean loss of a row is {means[0]:.4g}"
        evidence += f" beside longer rows and {means[1]:.4g} beside rows of its length"
        yield model_finding("depends-on-left-padding" if left else "depends-on-the-batch", evidence)
