"""What a training step teaches, read from the gradients of one batch.

The gradient of a loss by the scores is negative at one place of each position: the label. So the labels, where the
loss looks away, and whether they are the next tokens of what the decoder was fed, can be read without knowing how
the step is written. Sources and targets are made of different tokens, so that the decoder's input is recognised.

Shapes: B batch, T length of the decoder's input, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.doctor.defects import found
from manyheads.doctor.listening import Listener
from manyheads.doctor.notes import Lookup
from manyheads.doctor.patient import Patient, tensor_of
from manyheads.doctor.report import Finding

__all__ = [
    "LENGTHS",
    "Collate",
    "Lesson",
    "Rows",
    "TrainStep",
    "Vocabulary",
    "arguments",
    "contains",
    "default_collate",
    "lesson_findings",
    "read_lesson",
]

Rows = Sequence[Sequence[int]]
Collate = Callable[[list[list[int]], list[list[int]]], Sequence[Any]]
TrainStep = Callable[..., Any]

MOST = 0.9  # a share from which on something is the rule
LENGTHS = (3, 5, 4, 6)  # of the targets of a lesson and of what is learned by heart


class Vocabulary:
    """Token ids for lessons: some for sources, others for targets, drawn from a seeded generator."""

    def __init__(self, patient: Patient, seed: int = 0) -> None:
        known = patient.content("target")
        self.target = known[len(known) // 2 :]
        sources = patient.content("source") if "source" in patient.sides else known
        self.source = [token for token in sources if token not in set(self.target)][:100]
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, tokens: Sequence[int], length: int) -> list[int]:
        """Tokens of which no two beside each other are the same."""
        steps = torch.randint(1, len(tokens), (length,), generator=self.generator)
        return [tokens[place] for place in (steps.cumsum(0) % len(tokens)).tolist()]

    def pairs(self, lengths: Sequence[int]) -> tuple[list[list[int]], list[list[int]]]:
        """Sources and targets; target i is of lengths[i] tokens."""
        sources = [self.draw(self.source, length + 1) for length in lengths]
        return sources, [self.draw(self.target, length) for length in lengths]


def default_collate(patient: Patient, *, time_first: bool) -> Collate:
    """Rows as tensors: sources with the end mark, targets between both marks, padded at the end."""

    def tensor(rows: Rows, first: int | None, last: int | None) -> Tensor:
        before, after = [[] if mark is None else [mark] for mark in (first, last)]
        marked = [[*before, *row, *after] for row in rows]
        longest = max(map(len, marked))
        pad = patient.pad or 0
        ids = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in marked], device=patient.device)
        return ids.t() if time_first else ids

    def collate(sources: list[list[int]], targets: list[list[int]]) -> Sequence[Any]:
        target = tensor(targets, patient.bos, patient.eos)
        return (target,) if patient.kind == "decoder" else (tensor(sources, None, patient.eos), target)

    return collate


@dataclass(frozen=True)
class Lesson:
    """One batch as it was taught.

    Attributes:
        targets: the rows without marks.
        inputs: (B, T) what the decoder was fed.
        labels: (B, T) what it had to predict at each position, -1 where the loss looks away.
        table: the embedding matrix of the decoder's input.
    """

    targets: Rows
    inputs: Tensor
    labels: Tensor
    table: int


def read_lesson(patient: Patient, train_step: TrainStep, collate: Collate, vocabulary: Vocabulary) -> Lesson | None:
    """Teach one batch and read what was taught; None where it cannot be read."""
    sources, targets = vocabulary.pairs(LENGTHS)
    seen: list[Tensor] = []
    with Listener() as listener, gradients_of_scores(patient, seen):
        train_step(*arguments(collate(sources, targets)))
    fed = [
        (inputs, lookup) for lookup in listener.lookups if (inputs := decoder_input(lookup, targets)) is not None
    ]
    if not seen or not fed:
        return None
    gradient, (inputs, lookup) = seen[0].cpu(), fed[0]
    if gradient.dim() == 2 and len(gradient) == inputs.numel():
        gradient = gradient.unflatten(0, lookup.ids.shape)
    gradient = gradient if len(gradient) == len(targets) else gradient.transpose(0, 1)
    if gradient.shape[:2] != inputs.shape:
        return None
    strength = gradient.abs().amax(-1)
    labels = gradient.argmin(-1).masked_fill(strength <= 1e-9 * strength.max(), -1)
    return Lesson(targets, inputs, labels, lookup.table)


def decoder_input(lookup: Lookup, targets: Rows) -> Tensor | None:
    """The ids of a lookup (B, T), whichever axis comes first, if each row holds the beginning of its target."""
    for ids in (lookup.ids.cpu(), lookup.ids.cpu().t()) if lookup.ids.dim() == 2 else ():
        rows = ids.tolist()
        if len(rows) == len(targets) and all(
            contains(*pair) for pair in zip(rows, (t[:2] for t in targets), strict=True)
        ):
            return ids
    return None


@contextmanager
def gradients_of_scores(patient: Patient, seen: list[Tensor]) -> Iterator[None]:
    """Keep the gradients of the scores in the order of the backward pass, so those of the last call first.

    Scores are as wide as the target's vocabulary, whichever part of the model gives them: its output layer may be
    called apart. Where nothing is so wide, they are what the whole module returns.
    """
    assert patient.module is not None
    whole: list[Tensor] = []

    def keep(tensor: Tensor, place: list[Tensor]) -> None:
        tensor.register_hook(lambda gradient: place.append(gradient.detach().clone()))

    def watch(module: nn.Module, given: object, output: Any) -> None:
        for scores in (output, *output) if isinstance(output, (tuple, list)) else (output,):
            if isinstance(scores, Tensor) and scores.requires_grad and scores.size(-1) == patient.target_size:
                keep(scores, seen)

    def watch_whole(module: nn.Module, given: object, output: Any) -> None:
        scores = tensor_of(output)
        if scores.requires_grad:
            keep(scores, seen if scores.size(-1) == patient.target_size else whole)

    handles = [part.register_forward_hook(watch) for part in patient.module.modules()]
    handles.append(patient.module.register_forward_hook(watch_whole))
    try:
        yield
        if not seen:
            seen += whole
    finally:
        for handle in handles:
            handle.remove()


def arguments(batch: Any) -> Sequence[Any]:
    """What a collate function returned, as the arguments of a step."""
    return batch if isinstance(batch, (tuple, list)) else (batch,)


def lesson_findings(patient: Patient, lesson: Lesson) -> Iterator[Finding]:
    """Whether the labels are the next tokens, from the first to the end mark."""
    inputs, labels = lesson.inputs, lesson.labels
    taught = labels >= 0
    if patient.pad is not None:
        padded = (labels == patient.pad) & taught
        if padded.any():
            yield found("padding-in-loss", f"{int(padded.sum())} of {int(taught.sum())} labels are padding")
            taught = taught & ~padded
    if not taught.any():
        return
    copied = float((labels == inputs)[taught].float().mean())
    if copied > MOST:
        yield found("target-not-shifted", f"{copied:.0%} of the labels are the token the decoder is fed there")
    else:
        following = inputs[:, 1:] == labels[:, :-1]
        known = taught[:, :-1] & (inputs[:, 1:] != patient.pad)
        agreed = float(following[known].float().mean()) if known.any() else 0.0
        if agreed < MOST:
            yield found("wrong-labels", f"{agreed:.0%} of the labels are the token that is fed next")
    first = torch.tensor([row[0] for row in lesson.targets])
    unmarked = float((inputs[:, 0] == first).float().mean())
    # behind a start symbol it stands first, in rows that are not shifted second
    learned = float(((labels == first[:, None]) & taught)[:, :2].any(1).float().mean())
    if unmarked > MOST:
        evidence = "the decoder's first input is the first token of the target, not a start symbol"
        yield found("no-start-symbol", evidence + ("" if learned else "; that token is never a label"))
    elif learned < 1 - MOST:
        yield found("no-start-symbol", "the first token of a target is never a label")
    if patient.eos is not None and not (labels == patient.eos).any():
        yield found(
            "end-never-trained", f"the end symbol {patient.eos} is the label of no position of {labels.numel()}"
        )


def contains(row: Sequence[int], part: Sequence[int]) -> bool:
    """Whether a row holds these tokens, one after the other."""
    return any(list(row[place : place + len(part)]) == list(part) for place in range(len(row)))
