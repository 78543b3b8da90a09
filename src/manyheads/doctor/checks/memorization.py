"""Train on a few pairs and decode them: leaks, memorization, the start of decoding, and scoring.

The loss on random targets is compared with chance. Pairs that were memorized are decoded; the tracer shows the
symbol that decoding starts from, and whether the decoder is fed the reference while its output is scored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from manyheads.doctor.attention_tracer import AttentionTracer
from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.checks.training import (
    LENGTHS,
    Collate,
    TrainedBatch,
    TrainStep,
    Vocabulary,
    arguments,
    contains,
)
from manyheads.doctor.model_adapter import ModelAdapter
from manyheads.doctor.report import Finding
from manyheads.doctor.trace import Lookup

__all__ = ["TrainingFunctions", "loss_below_chance", "memorization_findings", "scoring_findings"]

RANDOM_PAIRS, RANDOM_LENGTH, RANDOM_UPDATES = 8, 6, 40
# Nats a token below which pairs count as memorized: none of their 22 tokens can then have less than e^-0.66, about
# a half, so each is the most likely one.
LEARNED = 0.03
IN_A_ROW = 5  # updates whose loss must be below it


@dataclass(frozen=True)
class TrainingFunctions:
    """Functions of a project that train, decode and score, as `examine` describes them."""

    train_step: TrainStep
    collate: Collate
    greedy: Callable[[Any], Any] | None
    score: Callable[..., Any] | None
    updates: int


def loss_below_chance(train_step: TrainStep, collate: Collate, vocabulary: Vocabulary) -> str | None:
    """Train on fresh random pairs; return the evidence if the loss falls below what chance allows (invariant A).

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
    """Return a loss as a float, None if the step returns no number."""
    if isinstance(loss, Tensor):
        return float(loss.detach()) if loss.numel() == 1 else None
    return float(loss) if isinstance(loss, (int, float)) else None


def memorization_findings(
    functions: TrainingFunctions, adapter: ModelAdapter, trained_batch: TrainedBatch | None, vocabulary: Vocabulary
) -> Iterator[Finding]:
    """Memorize a few pairs, decode them, and compare; check the symbol that decoding starts from (invariant F)."""
    assert functions.greedy is not None
    sources, targets = vocabulary.pairs(LENGTHS)
    batch = arguments(functions.collate(sources, targets))
    losses: list[float] = []
    with WithoutDropout():
        while len(losses) < functions.updates and not (
            len(losses) >= IN_A_ROW and max(losses[-IN_A_ROW:]) < LEARNED
        ):
            loss = as_number(functions.train_step(*batch))
            losses.append(math.inf if loss is None else loss)
    if adapter.module is not None:
        adapter.module.eval()
    with torch.no_grad(), AttentionTracer() as tracer:
        decoded = [plain_row(row, adapter) for row in rows_of(functions.greedy(batch[0]))]
    if trained_batch is not None:
        yield from start_findings(trained_batch, tracer.lookups, batch[0])
    if not losses or max(losses[-IN_A_ROW:]) >= LEARNED:
        evidence = (
            f"after {len(losses)} updates on {len(targets)} pairs the loss is {losses[-1] if losses else 0:.2f}"
        )
        yield model_finding("not-learned", evidence)
        return
    wrong = [index for index, target in enumerate(targets) if decoded[index : index + 1] != [target]]
    if wrong:
        first = sum(decoded[index : index + 1] == [] or decoded[index][:1] != targets[index][:1] for index in wrong)
        evidence = (
            f"{len(targets)} pairs are memorised (loss {losses[-1]:.2g}), and {len(wrong)} of them are "
            f"decoded differently, {first} from the first token on"
        )
        yield model_finding("decodes-otherwise", evidence)


class WithoutDropout(TorchFunctionMode):
    """Mode in which functional.dropout returns its input, so that training computes what decoding computes."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call the function, or return the input of a dropout."""
        if func.__name__ == "dropout":
            return args[0] if args else kwargs["input"]
        return func(*args, **(kwargs or {}))


def start_findings(trained_batch: TrainedBatch, lookups: Sequence[Lookup], source: Any) -> Iterator[Finding]:
    """Yield a finding if decoding starts from another symbol than training."""
    known = source.cpu() if isinstance(source, Tensor) else None
    fed = [
        lookup.ids.cpu()
        for lookup in lookups
        if lookup.table == trained_batch.table and not (known is not None and lookup.ids.shape == known.shape)
    ]
    trained = set(trained_batch.inputs[:, 0].tolist())
    if not fed or len(trained) != 1:
        return
    begun = set(fed[0].flatten()[:1].tolist())
    if begun != trained:
        evidence = f"training begins with token {trained.pop()}, decoding with token {begun.pop()}"
        yield model_finding("starts-otherwise", evidence)


def scoring_findings(
    score: Callable[..., Any], collate: Collate, trained_batch: TrainedBatch, vocabulary: Vocabulary
) -> Iterator[Finding]:
    """Yield a finding if the decoder is fed the reference while its output is scored."""
    sources, targets = vocabulary.pairs(LENGTHS)
    with torch.no_grad(), AttentionTracer() as tracer:
        score(*arguments(collate(sources, targets)))
    for lookup in tracer.lookups:
        if lookup.table != trained_batch.table:
            continue
        rows = {tuple(row) for ids in (lookup.ids, lookup.ids.t()) for row in ids.tolist()}
        fed = sum(any(contains(row, target[:3]) for row in rows) for target in targets)
        if fed:
            evidence = f"the decoder is fed the tokens of {fed} of {len(targets)} references while they are scored"
            yield model_finding("teacher-forced-score", evidence)
        return


def rows_of(decoded: Any) -> list[list[int]]:
    """Return the output of a decode function as rows of ids."""
    return decoded.tolist() if isinstance(decoded, Tensor) else [list(map(int, row)) for row in decoded]


def plain_row(row: Sequence[int], adapter: ModelAdapter) -> list[int]:
    """Return a row of ids up to its end mark, without begin mark and padding."""
    row = list(row)
    while row and row[0] in (adapter.bos, adapter.pad):
        row = row[1:]
    if adapter.eos in row:
        row = row[: row.index(adapter.eos)]
    return [token for token in row if token != adapter.pad]
