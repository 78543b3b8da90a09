"""What training and decoding make of lessons: what is learned by heart, and what cannot honestly be learned.

Losses on random targets are held against chance; pairs that were learned by heart are decoded, and it is watched
where the decoder begins, and whether it is given the reference while it is scored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from manyheads.doctor.defects import found
from manyheads.doctor.lessons import LENGTHS, Collate, Lesson, TrainStep, Vocabulary, arguments, contains
from manyheads.doctor.listening import Listener
from manyheads.doctor.notes import Lookup
from manyheads.doctor.patient import Patient
from manyheads.doctor.report import Finding

__all__ = ["Lessons", "falls_below_the_floor", "learned_by_heart", "scoring_findings"]

RANDOM_PAIRS, RANDOM_LENGTH, RANDOM_UPDATES = 8, 6, 40
# Nats a token below which pairs count as learned by heart: of their 22 tokens none can then have less than e^-0.66,
# about a half, so each is the most likely one.
LEARNED = 0.03
TRIES = 5  # so many updates in a row


@dataclass(frozen=True)
class Lessons:
    """What somebody's training and decoding are made of, as `examine` describes it."""

    train_step: TrainStep
    collate: Collate
    greedy: Callable[[Any], Any] | None
    score: Callable[..., Any] | None
    updates: int


def falls_below_the_floor(train_step: TrainStep, collate: Collate, vocabulary: Vocabulary) -> str | None:
    """A: updates on fresh random pairs; what was seen if the loss falls below what chance allows.

    The begin mark and the end mark can be predicted, as all rows are of one length, and a random token of V' costs
    ln V' nats: (n ln V') / (n + 2) is the least a mean can honestly be. Losses that are no mean are not judged.
    """
    losses = []
    for _ in range(RANDOM_UPDATES):
        sources, targets = vocabulary.pairs([RANDOM_LENGTH] * RANDOM_PAIRS)
        loss = as_number(train_step(*arguments(collate(sources, targets))))
        if loss is None:
            return None
        losses.append(loss)
    token = math.log(len(vocabulary.target))
    floor = token * RANDOM_LENGTH / (RANDOM_LENGTH + 2)
    last = sum(losses[-5:]) / 5
    if not 0.5 * token < losses[0] < 10 * token or last >= 0.95 * floor:
        return None
    return (
        f"on fresh random targets the loss is {last:.3f} after {RANDOM_UPDATES} updates; chance allows {floor:.3f}"
    )


def as_number(loss: Any) -> float | None:
    """A loss as a float; None if the step returns none."""
    if isinstance(loss, Tensor):
        return float(loss.detach()) if loss.numel() == 1 else None
    return float(loss) if isinstance(loss, (int, float)) else None


def learned_by_heart(
    lessons: Lessons, patient: Patient, lesson: Lesson | None, vocabulary: Vocabulary
) -> Iterator[Finding]:
    """F: a few pairs are learned by heart, then decoded exactly, from the symbol that training begins with."""
    assert lessons.greedy is not None
    sources, targets = vocabulary.pairs(LENGTHS)
    batch = arguments(lessons.collate(sources, targets))
    losses: list[float] = []
    with WithoutDropout():
        while len(losses) < lessons.updates and not (len(losses) >= TRIES and max(losses[-TRIES:]) < LEARNED):
            loss = as_number(lessons.train_step(*batch))
            losses.append(math.inf if loss is None else loss)
    if patient.module is not None:
        patient.module.eval()
    with torch.no_grad(), Listener() as listener:
        decoded = [plain_row(row, patient) for row in rows_of(lessons.greedy(batch[0]))]
    if lesson is not None:
        yield from start_findings(lesson, listener.lookups, batch[0])
    if not losses or max(losses[-TRIES:]) >= LEARNED:
        evidence = (
            f"after {len(losses)} updates on {len(targets)} pairs the loss is {losses[-1] if losses else 0:.2f}"
        )
        yield found("not-learned", evidence)
        return
    wrong = [place for place, target in enumerate(targets) if decoded[place : place + 1] != [target]]
    if wrong:
        first = sum(decoded[place : place + 1] == [] or decoded[place][:1] != targets[place][:1] for place in wrong)
        evidence = (
            f"{len(targets)} pairs are learned by heart (loss {losses[-1]:.2g}), and {len(wrong)} of them are "
            f"decoded otherwise, {first} from the first token on"
        )
        yield found("decodes-otherwise", evidence)


class WithoutDropout(TorchFunctionMode):
    """While it is entered, functional.dropout returns its input: what is learned is what will be decoded."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call the function, unless it drops."""
        if func.__name__ == "dropout":
            return args[0] if args else kwargs["input"]
        return func(*args, **(kwargs or {}))


def start_findings(lesson: Lesson, lookups: Sequence[Lookup], source: Any) -> Iterator[Finding]:
    """The first decoder input of decoding beside that of training."""
    known = source.cpu() if isinstance(source, Tensor) else None
    fed = [
        lookup.ids.cpu()
        for lookup in lookups
        if lookup.table == lesson.table and not (known is not None and lookup.ids.shape == known.shape)
    ]
    trained = set(lesson.inputs[:, 0].tolist())
    if not fed or len(trained) != 1:
        return
    begun = set(fed[0].flatten()[:1].tolist())
    if begun != trained:
        evidence = f"training begins with token {trained.pop()}, decoding with token {begun.pop()}"
        yield found("starts-otherwise", evidence)


def scoring_findings(
    score: Callable[..., Any], collate: Collate, lesson: Lesson | None, vocabulary: Vocabulary
) -> Iterator[Finding]:
    """Whether what is scored is decoded with the reference at hand."""
    if lesson is None:
        return
    sources, targets = vocabulary.pairs(LENGTHS)
    with torch.no_grad(), Listener() as listener:
        score(*arguments(collate(sources, targets)))
    for lookup in listener.lookups:
        if lookup.table != lesson.table:
            continue
        rows = {tuple(row) for ids in (lookup.ids, lookup.ids.t()) for row in ids.tolist()}
        fed = sum(any(contains(row, target[:3]) for row in rows) for target in targets)
        if fed:
            evidence = f"the decoder is fed the tokens of {fed} of {len(targets)} references while they are scored"
            yield found("teacher-forced-score", evidence)
        return


def rows_of(decoded: Any) -> list[list[int]]:
    """What a decode function returned, as rows of ids."""
    return decoded.tolist() if isinstance(decoded, Tensor) else [list(map(int, row)) for row in decoded]


def plain_row(row: Sequence[int], patient: Patient) -> list[int]:
    """A row without its begin mark, without padding, and up to its end mark."""
    row = list(row)
    while row and row[0] in (patient.bos, patient.pad):
        row = row[1:]
    if patient.eos in row:
        row = row[: row.index(patient.eos)]
    return [token for token in row if token != patient.pad]
