"""Read the labels of a training step from the gradients of one batch, and check them.

The gradient of a loss by the scores is negative at one token of each position: the label. Positions without a
gradient are ignored by the loss. So it can be checked whether labels are the tokens that the decoder is fed next,
without knowledge of the step. Sources and targets are made of different tokens, to recognise the decoder's input.

Shapes: B batch, T length of the decoder's input, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.doctor.attention_tracer import AttentionTracer
from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.model_adapter import ModelAdapter, tensor_of
from manyheads.doctor.report import Finding
from manyheads.doctor.tolerances import NO_GRADIENT
from manyheads.doctor.trace import Lookup

__all__ = [
    "LENGTHS",
    "Collate",
    "Rows",
    "TrainStep",
    "TrainedBatch",
    "Vocabulary",
    "arguments",
    "contains",
    "default_collate",
    "label_findings",
    "trace_training_step",
]

Rows = Sequence[Sequence[int]]
Collate = Callable[[list[list[int]], list[list[int]]], Sequence[Any]]
TrainStep = Callable[..., Any]

MOST = 0.9  # share of the positions from which on they are taken for all
LENGTHS = (3, 5, 4, 6)  # tokens of the targets of a traced batch, and of the pairs to memorize


class Vocabulary:
    """Token ids to train with, others for sources than for targets, drawn from a seeded generator."""

    def __init__(self, adapter: ModelAdapter, seed: int = 0) -> None:
        known = adapter.content("target")
        self.target = known[len(known) // 2 :]
        sources = adapter.content("source") if "source" in adapter.sides else known
        self.source = [token for token in sources if token not in set(self.target)][:100]
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, tokens: Sequence[int], length: int) -> list[int]:
        """Return a row of tokens in which neighbours differ."""
        steps = torch.randint(1, len(tokens), (length,), generator=self.generator)
        return [tokens[index] for index in (steps.cumsum(0) % len(tokens)).tolist()]

    def pairs(self, lengths: Sequence[int]) -> tuple[list[list[int]], list[list[int]]]:
        """Return sources and targets; target i has lengths[i] tokens."""
        sources = [self.draw(self.source, length + 1) for length in lengths]
        return sources, [self.draw(self.target, length) for length in lengths]


def default_collate(adapter: ModelAdapter, *, time_first: bool) -> Collate:
    """Return a function that pads rows at the end: sources with end mark, targets between both marks."""

    def tensor(rows: Rows, first: int | None, last: int | None) -> Tensor:
        before, after = [[] if mark is None else [mark] for mark in (first, last)]
        marked = [[*before, *row, *after] for row in rows]
        longest = max(map(len, marked))
        pad = adapter.pad or 0
        ids = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in marked], device=adapter.device)
        return ids.t() if time_first else ids

    def collate(sources: list[list[int]], targets: list[list[int]]) -> Sequence[Any]:
        target = tensor(targets, adapter.bos, adapter.eos)
        return (target,) if adapter.kind == "decoder" else (tensor(sources, None, adapter.eos), target)

    return collate


@dataclass(frozen=True)
class TrainedBatch:
    """Inputs and labels of one training step.

    Attributes:
        targets: the rows without marks.
        inputs: ids that the decoder was fed (B, T).
        labels: ids that it had to predict (B, T), -1 where the loss ignores a position.
        table: id() of the embedding matrix of the decoder's input.
    """

    targets: Rows
    inputs: Tensor
    labels: Tensor
    table: int


def trace_training_step(
    adapter: ModelAdapter, train_step: TrainStep, collate: Collate, vocabulary: Vocabulary
) -> TrainedBatch | None:
    """Run a training step on one batch and return its inputs and labels, None where they cannot be read."""
    sources, targets = vocabulary.pairs(LENGTHS)
    seen: list[Tensor] = []
    with AttentionTracer() as tracer, gradients_of_scores(adapter, seen):
        train_step(*arguments(collate(sources, targets)))
    fed = [(inputs, lookup) for lookup in tracer.lookups if (inputs := decoder_input(lookup, targets)) is not None]
    if not seen or not fed:
        return None
    gradient, (inputs, lookup) = seen[0].cpu(), fed[0]
    if gradient.dim() == 2 and len(gradient) == inputs.numel():
        gradient = gradient.unflatten(0, lookup.ids.shape)
    gradient = gradient if len(gradient) == len(targets) else gradient.transpose(0, 1)
    if gradient.shape[:2] != inputs.shape:
        return None
    strength = gradient.abs().amax(-1)
    labels = gradient.argmin(-1).masked_fill(strength <= NO_GRADIENT * strength.max(), -1)
    return TrainedBatch(targets, inputs, labels, lookup.table)


def decoder_input(lookup: Lookup, targets: Rows) -> Tensor | None:
    """Return the ids of a lookup as (B, T), if each row holds the beginning of its target, else None."""
    for ids in (lookup.ids.cpu(), lookup.ids.cpu().t()) if lookup.ids.dim() == 2 else ():
        rows = ids.tolist()
        if len(rows) == len(targets) and all(
            contains(*pair) for pair in zip(rows, (t[:2] for t in targets), strict=True)
        ):
            return ids
    return None


@contextmanager
def gradients_of_scores(adapter: ModelAdapter, seen: list[Tensor]) -> Iterator[None]:
    """Collect the gradients of the scores in the order of the backward pass, those of the last call first.

    Scores are tensors as wide as the target's vocabulary, from any module: the output layer may be called apart.
    Where no tensor is so wide, scores are the output of the whole module.
    """
    assert adapter.module is not None
    whole: list[Tensor] = []

    def store_gradient(tensor: Tensor, gradients: list[Tensor]) -> None:
        tensor.register_hook(lambda gradient: gradients.append(gradient.detach().clone()))

    def watch(module: nn.Module, inputs: object, output: Any) -> None:
        for scores in (output, *output) if isinstance(output, (tuple, list)) else (output,):
            if isinstance(scores, Tensor) and scores.requires_grad and scores.size(-1) == adapter.size("target"):
                store_gradient(scores, seen)

    def watch_whole(module: nn.Module, inputs: object, output: Any) -> None:
        scores = tensor_of(output)
        if scores.requires_grad:
            store_gradient(scores, seen if scores.size(-1) == adapter.size("target") else whole)

    handles = [part.register_forward_hook(watch) for part in adapter.module.modules()]
    handles.append(adapter.module.register_forward_hook(watch_whole))
    try:
        yield
        if not seen:
            seen += whole
    finally:
        for handle in handles:
            handle.remove()


def arguments(batch: Any) -> Sequence[Any]:
    """Return the batch of a collate function as the arguments of a step."""
    return batch if isinstance(batch, (tuple, list)) else (batch,)


def label_findings(adapter: ModelAdapter, trained_batch: TrainedBatch) -> Iterator[Finding]:
    """Yield findings unless labels are the next tokens, from the first one to the end mark."""
    inputs, labels = trained_batch.inputs, trained_batch.labels
    trained = labels >= 0
    if adapter.pad is not None:
        padded = (labels == adapter.pad) & trained
        if padded.any():
            yield model_finding(
                "padding-in-loss", f"{int(padded.sum())} of {int(trained.sum())} labels are padding"
            )
            trained = trained & ~padded
    if not trained.any():
        return
    copied = float((labels == inputs)[trained].float().mean())
    if copied > MOST:
        yield model_finding(
            "target-not-shifted", f"{copied:.0%} of the labels are the token the decoder is fed there"
        )
    else:
        following = inputs[:, 1:] == labels[:, :-1]
        known = trained[:, :-1] & (inputs[:, 1:] != adapter.pad)
        agreed = float(following[known].float().mean()) if known.any() else 0.0
        if agreed < MOST:
            yield model_finding("wrong-labels", f"{agreed:.0%} of the labels are the token that is fed next")
    first = torch.tensor([row[0] for row in trained_batch.targets])
    unmarked = float((inputs[:, 0] == first).float().mean())
    # behind a start symbol it stands first, in rows that are not shifted second
    learned = float(((labels == first[:, None]) & trained)[:, :2].any(1).float().mean())
    if unmarked > MOST:
        evidence = "the decoder's first input is the first token of the target, not a start symbol"
        yield model_finding("no-start-symbol", evidence + ("" if learned else "; that token is never a label"))
    elif learned < 1 - MOST:
        yield model_finding("no-start-symbol", "the first token of a target is never a label")
    if adapter.eos is not None and not (labels == adapter.eos).any():
        yield model_finding(
            "end-never-trained", f"the end symbol {adapter.eos} is the label of no position of {labels.numel()}"
        )


def contains(row: Sequence[int], part: Sequence[int]) -> bool:
    """Return whether a row holds a sequence of tokens."""
    return any(list(row[index : index + len(part)]) == list(part) for index in range(len(row)))
