"""Read the labels of a training step from the gradients of one batch, and check them.

The gradient of a loss with respect to the scores is negative at one token of each position: the label. Positions
without a gradient are ignored by the loss. So it can be checked whether labels are the tokens that the decoder is
fed next, without knowledge of the step. Sources and targets are made of different tokens, to recognise the
decoder's input.

Shapes: B batch, T length of the decoder's input, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from transformer_doctor.checks.step_tracer import IGNORED, ScoreGradient, StepTracer
from transformer_doctor.model_adapter import ModelAdapter
from transformer_doctor.tolerances import NO_GRADIENT

Rows = Sequence[Sequence[int]]
Collate = Callable[[list[list[int]], list[list[int]]], Sequence[Any]]
TrainStep = Callable[..., Any]

LENGTHS = (3, 5, 4, 6)  # tokens of the targets of a traced batch, and of the pairs to memorize
_TESTED_LOW, _TESTED_HIGH = 12, 4  # lowest and highest ids that are tried as labels: special ids stand there
_MIN_AGREEMENT = 0.9  # share of the labels that two readings have in common, at positions without a label too
# where a softmax is sure of a wrong token, rise and fall are equal, and rounding must not decide
_CLEAR_FACTOR = 1.01
# scores and gradient (B, T, V), labels of the loss call and places in the scores, from 1, (B, T)
_AlignedScores = tuple[Tensor, Tensor, Tensor, Tensor]
UNKNOWN = -2  # an input after the last one
BEGIN = 3  # tokens by which a text is recognised
UNCLEAR = -3  # label of a position without a gradient, at which a softmax is 1 for a token
_SURE_PROBABILITY = 1 - 1e-6  # softmax from which on it leaves no gradient
_NO_LOGS = 0.01  # logarithm of a sum of probabilities from which on it is none of 1
UNREADABLE = "the labels of the training step could not be read: no embedding of targets was seen, or no scores"


class Vocabulary:
    """Token ids to train with, others for sources than for targets, drawn from a seeded generator."""

    def __init__(self, adapter: ModelAdapter, seed: int = 0) -> None:
        self.known = known = adapter.content("target")
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

    def pairs_of_special_ids(self) -> tuple[list[list[int]], list[list[int]]]:
        """Return sources, and targets with the lowest and the highest ids, of which one may be ignored as a label.

        These follow some other tokens, by which the target is recognised.
        """
        tested = list(dict.fromkeys([*self.known[:_TESTED_LOW], *self.known[-_TESTED_HIGH:]]))
        rows = [tested[start : start + 4] for start in range(0, len(tested), 4)]
        targets = [[*self.draw(self.target, BEGIN), *row] for row in rows]
        return [self.draw(self.source, len(row) + 1) for row in targets], targets


@dataclass(frozen=True)
class Part:
    """Forward pass of a training step: its number of rows, and the number of optimizer steps before it."""

    rows: int
    update: int


@dataclass(frozen=True)
class TrainedBatch:
    """Inputs and labels of one training step, the rows of all parts of the batch in their order.

    Attributes:
        targets: the target recognised in each row, without marks; empty where none was.
        inputs: ids that the decoder was fed (B, T); UNKNOWN after the end of a shorter part.
        labels: ids that it had to predict (B, T), IGNORED where the loss ignores a position, UNCLEAR where the
            model is so sure of a token that there is no gradient either way.
        weights: factor of each position's loss in the sum that is minimised (B, T), 0 where it is ignored.
        nats: cross-entropy of each label in nats (B, T), 0 where it is ignored.
        table: id() of the embedding matrix of the decoder's input, 0 if unknown.
        parts: forward passes of the step, in order.
        raw: whether the loss takes scores as they are for log-probabilities.
        reshaped: whether the loss reads the numbers of the scores in another order than the model returns them.
        places: for each tensor of scores, its number, the first row of its part, its shape (...) without V, and the
            flat index of each position of the part in it, counted from 1, (B, T).
        without_gradient: ids (B, T) of forward passes whose scores got no gradient.
        exact: whether no scores are in half precision, as under autocast.
    """

    targets: Rows
    inputs: Tensor
    labels: Tensor
    weights: Tensor
    nats: Tensor
    table: int
    parts: Sequence[Part] = ()
    raw: bool = False
    reshaped: bool = False
    places: Sequence[tuple[int, int, torch.Size, Tensor]] = ()
    without_gradient: Sequence[Tensor] = ()
    exact: bool = True

    @property
    def trained(self) -> Tensor:
        """Return the mask of the positions that have a label (B, T)."""
        return self.labels >= 0


def read_batch(tracer: StepTracer, targets: Rows) -> TrainedBatch | None:
    """Return the inputs and labels of a traced step, None where they cannot be read."""
    known = [(fed, rows) for fed in tracer.fed if (rows := token_rows(fed.ids, targets)) is not None]
    known = [(fed, rows) for fed, rows in known if fed.table] or known
    parts: list[tuple[Part, Tensor, _AlignedScores]] = []
    reshaped, places, without_gradient = False, [], []
    for index, (fed, inputs) in enumerate(known):
        end = known[index + 1][0].order if index + 1 < len(known) else tracer.count + 1
        between = [score for score in tracer.scores if fed.order < score.order < end and score.gradient is not None]
        turned = not torch.equal(fed.ids.cpu(), inputs)
        aligned = _align_scores(between, inputs, turned=turned)
        if aligned is None:
            without_gradient.append(inputs)
        else:
            first = sum(part.rows for part, _, _ in parts)
            found = [(score, _places(score, inputs, aligned[1], turned=turned)) for score in between]
            places += [(score.order, first, score.values.shape[:-1], at) for score, at in found if at is not None]
            parts.append((Part(len(inputs), between[-1].update), inputs, aligned))
            reshaped |= any(_is_reshaped(score, between) for score in between)
    if not parts:
        return None
    longest = max(inputs.size(1) for _, inputs, _ in parts)

    def join(rows: Sequence[Tensor], fill: float) -> Tensor:
        return torch.cat([functional.pad(row, (0, longest - row.size(1)), value=fill) for row in rows])

    inputs = join([inputs for _, inputs, _ in parts], UNKNOWN)
    labels, weights, nats = zip(*(read_labels(*aligned[:3]) for _, _, aligned in parts), strict=True)
    return TrainedBatch(
        [next((target for target in targets if start_of(row, target[:BEGIN]) >= 0), ()) for row in inputs.tolist()],
        inputs,
        join(labels, IGNORED),
        join(weights, 0),
        join(nats, 0),
        known[0][0].table,
        [part for part, _, _ in parts],
        any(are_raw(*aligned[:2]) for _, _, aligned in parts),
        reshaped,
        places,
        without_gradient,
        all(score.values.itemsize > 2 for score in tracer.scores),
    )


def _places(score: ScoreGradient, inputs: Tensor, gradient: Tensor, *, turned: bool) -> Tensor | None:
    """Return for each position of inputs (B, T) its flat index in scores, from 1; gradient is (B, T, V)."""
    for _, own, _, places in reversed([*_arrangements(score, inputs, turned=turned)]):
        agreed = (own.argmin(-1) == gradient.argmin(-1))[gradient.any(-1)]
        if agreed.numel() and float(agreed.float().mean()) > _MIN_AGREEMENT:
            return places
    return None


def are_raw(scores: Tensor, gradient: Tensor) -> bool:
    """Return whether scores (..., V) that are no log-probabilities have a gradient at their labels alone."""
    others = gradient.scatter(-1, gradient.argmin(-1, keepdim=True), 0.0)
    return bool(gradient.any()) and not bool(others.any()) and bool((scores.logsumexp(-1).abs() > _NO_LOGS).any())


def _is_reshaped(loss: ScoreGradient, records: Sequence[ScoreGradient]) -> bool:
    """Return whether a loss reads scores (..., V) of whose rows an earlier tensor holds the numbers, but none."""
    rows = loss.values.reshape(-1, loss.values.size(-1))
    earlier = [record.values.reshape(-1, rows.size(-1)) for record in records if record.order < loss.order]
    if not loss.normalized or any(bool((rows[:, None] == known).all(-1).any()) for known in earlier):
        return False
    return any(known.shape == rows.shape and bool(torch.isin(rows, known).all()) for known in earlier)


def align_texts(rows: Tensor, texts: Rows) -> Tensor:
    """Return the tokens of texts where these fit the rows (B, T) of inputs best, UNKNOWN elsewhere (B, T)."""
    aligned = torch.full_like(rows, UNKNOWN)
    for row, own, text in zip(rows, aligned, map(torch.tensor, texts), strict=True):
        agreement = (row.unfold(0, len(text), 1) == text).sum(-1) if 0 < len(text) <= len(row) else row[:0]
        if len(agreement):
            own[int(agreement.argmax()) :][: len(text)] = text
    return aligned


def hidden_texts(tracer: StepTracer, texts: Rows) -> Rows:
    """Return texts as a step reads them, some of their tokens hidden: from the lookup that shares most tokens."""
    looked_up = [fed.ids.cpu() for fed in tracer.fed if fed.table and fed.ids.dim() == 2]
    rows = [ids for table in looked_up for ids in (table, table.t()) if len(ids) == len(texts)]
    pairs = [(ids, align_texts(ids, texts)) for ids in rows]
    shared = [int((ids == aligned).sum()) for ids, aligned in pairs]
    ids, aligned = pairs[shared.index(max(shared))] if pairs else (torch.empty(0, 0), torch.empty(0, 0))
    found = [row[own != UNKNOWN].tolist() for row, own in zip(ids, aligned, strict=True)]
    return found if found and all(found) else texts


def token_rows(ids: Tensor, texts: Rows, begin: int | None = BEGIN) -> Tensor | None:
    """Return ids as (B, T) if half of the rows hold the first `begin` tokens of a text (None: all), else None."""
    for rows in (ids.cpu(), ids.cpu().t()) if ids.dim() == 2 and ids.size(-1) > 0 else ():
        if rows.size(1) > 1 and bool((rows.diff(dim=1) == 1).all()):
            continue  # positions
        matching = sum(any(start_of(row, text[:begin]) >= 0 for text in texts) for row in rows.tolist())
        if 2 * matching >= len(rows):
            return rows
    return None


def _align_scores(recorded: Sequence[ScoreGradient], inputs: Tensor, *, turned: bool) -> _AlignedScores | None:
    """Return the scores of inputs (B, T), the gradient of the loss by them, and its labels, None if unknown.

    Scores that a softmax reads are preferred to a product of the same width, and the last ones to earlier ones. The
    order of the rows of flat scores, (B * T, V) or (T * B, V), is that of scores with three axes. Of several heads,
    one whose labels are the inputs is preferred, then one whose labels are the next inputs.
    """
    candidates = [(record, pair) for record in recorded for pair in _arrangements(record, inputs, turned=turned)]
    whole = [record for record in recorded if record.values.shape[:-1].numel() == inputs.numel()]
    likelier = {id(record): pair for record, pair in candidates}
    complete = {id(record) for record in whole if id(record) in likelier}
    if any(bool(likelier[record][1][:, -1].any()) for record in complete):  # the others are a piece
        candidates = [(record, pair) for record, pair in candidates if id(record) in complete]
    shaped = [pair for record, pair in candidates if record.values.dim() == 3]
    labels = max(reversed(shaped), key=partial(_closeness, inputs))[1].argmin(-1) if shaped else None
    for normalized in (True, False):
        for record, pair in reversed(candidates):
            agrees = labels is None or float((pair[1].argmin(-1) == labels).float().mean()) > _MIN_AGREEMENT
            if record.normalized == normalized and agrees:
                return pair
    return None


def _closeness(inputs: Tensor, pair: _AlignedScores) -> int:
    """Return 2 for labels that are the inputs (B, T), 1 for labels that are the next inputs, 0 for others."""
    labels = pair[1].argmin(-1).masked_fill(~pair[1].any(-1), IGNORED)
    for closeness, seen, fed in ((2, labels, inputs), (1, labels[:, :-1], inputs[:, 1:])):
        if float((seen == fed)[seen != IGNORED].float().mean()) > _MIN_AGREEMENT:
            return closeness
    return 0


def _arrangements(recorded: ScoreGradient, inputs: Tensor, *, turned: bool) -> Iterator[_AlignedScores]:
    """Yield scores, gradient, labels and places, the likelier arrangement last, nothing if axes do not fit.

    A step that scores all inputs but the last ones gives no gradient to these.
    """
    assert recorded.gradient is not None
    pair = [tensor.detach().cpu().double() for tensor in (recorded.values, recorded.gradient)]
    given = recorded.labels
    labels = torch.full(pair[0].shape[:-1], UNCLEAR) if given is None else given.cpu()
    places = torch.arange(1, labels.numel() + 1).view(labels.shape)
    batch, length = inputs.shape
    for scored in (length - 1, length):
        missing = (0, 0, 0, length - scored)
        for time_first in (not turned, turned):
            axes = (scored, batch) if time_first else (batch, scored)
            if pair[0].dim() == 2 and len(pair[0]) == batch * scored:
                shaped = [tensor.unflatten(0, axes) for tensor in (*pair, labels, places)]
            elif pair[0].shape[:-1] == axes:
                shaped = [*pair, labels, places]
            else:
                continue
            rows = [tensor.transpose(0, 1) if time_first else tensor for tensor in shaped]
            known = functional.pad(rows[2], missing[2:], value=IGNORED)
            scores, gradient = (functional.pad(row, missing) for row in rows[:2])
            yield scores, gradient, known, functional.pad(rows[3], missing[2:])


def read_labels(scores: Tensor, gradient: Tensor, given: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return labels, weights and cross-entropies (...) of scores (..., V) and the gradient of a loss by them.

    The gradient vanishes where a softmax is sure of the label: there it is the one that the loss was `given` (...),
    and weighs as much as others.
    """
    (lowest, labels), (highest, raised) = gradient.min(-1), gradient.max(-1)
    strength = torch.maximum(highest, -lowest)
    ignored = strength <= NO_GRADIENT * strength.max()
    likeliest, sure = scores.argmax(-1), is_sure(scores)
    rounded = sure & (gradient.gather(-1, likeliest[..., None])[..., 0] <= 0)  # of the label: probability - 1
    slope, fits = _slopes(scores, gradient, labels, raised)
    rises = highest > -_CLEAR_FACTOR * lowest
    maximised = rises & ((lowest >= 0) | (fits & (slope < 0)))
    if maximised[~ignored & ~rounded].float().mean() > _MIN_AGREEMENT:
        labels, weights, nats = read_labels(scores, -gradient, given)
        return labels, -weights, nats
    # where the label is likelier than label smoothing wants it, the loss raises the scores of all others
    likely = rounded | (rises & (lowest > gradient.clamp(max=0).sum(-1) / 2))
    labels = torch.where(likely, likeliest, labels)
    weights = _position_weights(scores, gradient, labels).masked_fill(ignored | rounded, 0)
    labels = labels.masked_fill(ignored, IGNORED).masked_fill(ignored & sure, UNCLEAR)
    if given is not None:
        labels = torch.where(labels == UNCLEAR, given, labels)
    nats = -scores.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    usual = weights[weights != 0].median() if weights.any() else weights.new_zeros(())
    return labels, torch.where((labels >= 0) & (weights == 0), usual, weights), nats.masked_fill(labels < 0, 0)


def is_sure(scores: Tensor) -> Tensor:
    """Return whether a softmax of scores (..., V) is so sure of a token that its gradient may vanish (...)."""
    return scores.softmax(-1).amax(-1) > _SURE_PROBABILITY


def _position_weights(scores: Tensor, gradient: Tensor, labels: Tensor) -> Tensor:
    """Return the factor w of each position's loss, (...), from scores and their gradient (..., V).

    The gradient of w times a cross-entropy by the scores is w (p - q), p being the softmax and q the labels'
    distribution. Apart from the label q is constant, 0 or the smoothing, so that w is the slope of the gradient
    over p there. Where p is constant too, w follows from the label's own gradient, as if nothing was smoothed.
    """
    slope, fits = _slopes(scores, gradient, labels)
    own, chosen = (tensor.gather(-1, labels[..., None])[..., 0] for tensor in (gradient, scores.softmax(-1)))
    return torch.where(fits & (slope > 0), slope, -own / (1 - chosen).clamp(min=1e-6))


def _slopes(scores: Tensor, gradient: Tensor, *left_out: Tensor) -> tuple[Tensor, Tensor]:
    """Return the slope of the gradient over the softmax, some tokens (...) left out, and whether it is constant."""
    p = scores.softmax(-1)
    other = torch.ones_like(p)
    for tokens in left_out:
        other = other.scatter(-1, tokens[..., None], 0.0)
    count = other.sum(-1, keepdim=True).clamp(min=1)
    p_apart = (p - (p * other).sum(-1, keepdim=True) / count) * other
    gradient_apart = (gradient - (gradient * other).sum(-1, keepdim=True) / count) * other
    variance = p_apart.square().sum(-1)
    slope = (p_apart * gradient_apart).sum(-1) / variance.clamp(min=1e-30)
    residual = (gradient_apart - slope[..., None] * p_apart).square().sum(-1)
    return slope, residual <= 1e-2 * gradient_apart.square().sum(-1)


def read_classes(tracer: StepTracer, rows: int) -> tuple[Tensor, float, Part, float] | None:
    """Return labels (B,), mean cross-entropy, forward pass and sum of weights of a classifier's step, or None."""
    for normalized in (True, False):
        for recorded in reversed(tracer.scores):
            gradient, values = recorded.gradient, recorded.values
            if gradient is not None and recorded.normalized == normalized and values.shape[:-1] == (rows,):
                labels, weights, nats = read_labels(values.cpu().double(), gradient.cpu().double())
                mean = float(nats[labels >= 0].mean()) if (labels >= 0).any() else 0.0
                return labels, mean, Part(rows, recorded.update), float(weights.sum())
    return None


def arguments(batch: Any) -> Sequence[Any]:
    """Return the batch of a collate function as the arguments of a step."""
    return batch if isinstance(batch, (tuple, list)) else (batch,)


def start_of(row: Sequence[int], text: Sequence[int], *, reverse: bool = False) -> int:
    """Return where a text begins in a row, with `reverse` one that is read backwards too; -1 where it does not."""
    for wanted in (list(text), list(text)[::-1])[: 1 + reverse]:
        # a short cut, as most rows and texts have no token in common
        for start in range(len(row) - len(wanted) + 1) if not wanted or wanted[0] in row else ():
            if list(row[start : start + len(wanted)]) == wanted:
                return start
    return -1
