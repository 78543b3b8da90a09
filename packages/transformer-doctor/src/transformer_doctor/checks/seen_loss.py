"""Read from the gradient of the scores and the calls of losses, while a real training runs, what its loss reads.

Shapes: B batch, T length, V vocabulary, N positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer_doctor.checks.step_tracer import IGNORED
from transformer_doctor.checks.training import are_raw, is_sure, read_labels
from transformer_doctor.checks.updates import is_fresh
from transformer_doctor.errors import UsageError
from transformer_doctor.model_output import tensor_of
from transformer_doctor.module_state import is_usual
from transformer_doctor.tolerances import NO_GRADIENT

RIGHT_POSITIONS = "the loss of the training reads the right positions"
_SAMPLE = 256  # positions whose scores are kept until their gradient comes
_SHARE = 0.9  # share of positions from which on they are taken for all
_LOW_NATS, _HIGH_NATS = 0.02, 1.0  # mean loss that is too good, and that of a model that has to learn
_ROUNDING = 0.05  # of the sum of a gradient in half precision
_ROUNDED = 1e-5  # share of the largest gradient up to which its sum over the tokens is rounding
_SAME_WEIGHT = 5e-3  # relative difference of a weight from 1 / positions
_BATCHES, _ROWS_LEFT_OUT = 4, 0.25  # batches in which it is seen before it is said; share of the rows


class SeenLoss:
    """Record of the positions and labels that the loss of a training reads.

    Attributes:
        totals: since the last step, sum of the weights and number of the labels of the loss of each backward pass.
        read_positions: whether labels of the positions of a text were read.
        low: mean loss in nats of a model that had to learn, where it is too good; else None.

    Args:
        find: makes a finding of its name, evidence and check.
        model: the model; its configuration says whether it makes the inputs of its decoder of the labels.
        pad: id of padding, None for that of the configuration or of an embedding.
    """

    def __init__(self, find: Callable[[str, str, str], None], model: nn.Module, pad: int | None) -> None:
        config = getattr(model, "config", None)
        known = [
            getattr(config, "pad_token_id", None),
            *(getattr(part, "padding_idx", None) for part in model.modules()),
        ]
        self.totals: list[tuple[float, int]] = []
        self.low: float | None = None
        self.read_positions = False
        self._find, self._derives_inputs = find, bool(getattr(config, "is_encoder_decoder", False))
        self._pad = pad if pad is not None else next((symbol for symbol in known if isinstance(symbol, int)), None)
        self._ids: list[Tensor] = []  # of the forward passes since the last backward pass
        self._named: Mapping[str, Any] = {}  # arguments by name of the last of them
        self._newest: Tensor | None = None
        self._given: list[tuple[int, Tensor]] = []  # widths and labels of losses, since the last backward pass
        self._had_to_learn = is_fresh(
            {name: weight for name, weight in model.named_parameters() if is_usual(weight)}
        )
        self._whole_means = 0
        self._left_out: list[list[bool]] = []

    def read_inputs(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Remember the ids of a forward pass."""
        self._ids += [
            value for name, value in [*zip(args, args, strict=True), *named.items()] if _is_ids(name, value)
        ]
        self._named = {**self._named, **named}

    def take_inputs(self) -> Sequence[Tensor]:
        """Return the ids since the last backward pass, and forget them."""
        ids, self._ids, self._named, self._newest, self._given = self._ids, [], {}, None, []
        return ids

    def read_labels(self, scores: Tensor, labels: Tensor) -> None:
        """Remember the labels that a loss of scores was called with; see `watch_losses`."""
        self._given.append((scores.numel() // max(labels.numel(), 1), labels))

    @property
    def waits(self) -> bool:
        """Return whether scores were read whose gradient has not come."""
        return self._newest is not None

    def read_output(self, output: Any, guard: Callable[..., None], inner: Tensor | None = None) -> None:
        """Wait for the gradient of the scores of a forward pass; the last ones before a backward pass count.

        Args:
            output: what the forward pass returned.
            guard: calls a function with arguments, and catches its errors.
            inner: what the last part returned, which the loss inside a model reads if the scores are copied after.
        """
        with suppress(UsageError):
            scores = tensor_of(output)
            if not (scores.requires_grad and scores.dim() in (2, 3) and scores.size(-1) > 1):
                return
            self._newest = scores
            kept = _rows(scores).clone(), [*self._ids], self._named, id(scores)
            scores.register_hook(partial(guard, self._read_gradient, *kept))
            copied = inner is not None and inner.shape == scores.shape and inner.dtype != scores.dtype
            if inner is not None and copied and torch.equal(_rows(inner).to(scores.dtype), kept[0]):
                inner.register_hook(partial(guard, self._read_gradient, *kept))

    def _read_gradient(
        self, sample: Tensor, seen: Sequence[Tensor], named: Mapping[str, Any], identity: int, gradient: Tensor
    ) -> None:
        """Judge the gradient (B, T, V) or (N, V) of scores; `sample` holds some of their rows."""
        least, most = gradient.amin(-1), gradient.amax(-1)
        strength = torch.maximum(most, -least)
        clear = (strength > NO_GRADIENT * strength.max()) & (least < 0)
        labels, every = gradient.argmin(-1), len(gradient.flatten(0, -2)) // _SAMPLE + 1
        called = self._labels_of(labels, clear, gradient.size(-1))
        sure = is_sure(sample)
        vanished = (called >= 0) & ~clear
        if not float(sure[vanished.flatten()[::every]].float().mean()) > _SHARE:
            vanished = torch.zeros_like(clear)
        trained = clear | vanished
        if id(self._newest) == identity and not trained.any() and float(sure.float().mean()) > _SHARE:
            self.low = 0.0 if self._had_to_learn else None
        shapes = [ids for ids in seen if ids.numel() == trained.numel() and not _is_positions(ids)]
        given = named.get("labels")
        fits = isinstance(given, Tensor) and given.numel() == trained.numel() and given.dim() == 2
        given = given if fits else None
        texts = given is None and not shapes  # scores of classes of texts have no positions
        if id(self._newest) != identity or not trained.any() or (texts and gradient.dim() == 3):
            return
        self._newest = None  # of scores and what they were copied from, the first gradient counts
        sums = gradient.sum(-1)  # of softmax and cross-entropy 0, of log-probabilities that of the label
        likelihood = (most < -1.01 * least) & ((sums.abs() < _ROUNDING * strength) | (sums < least / 2))
        firm = clear & (strength > _ROUNDED * strength.max())
        if float(likelihood[firm].float().mean()) < _SHARE:
            return  # what is maximised is no likelihood of tokens
        labels = torch.where(clear, labels, called)
        chosen = [rows[::every] for rows in (gradient.flatten(0, -2).detach(), labels.flatten(), trained.flatten())]
        weight = self._judge_sample(sample, *chosen)
        self.totals.append((weight * int(trained.sum()), int(trained.sum())))
        if texts:
            return
        self.read_positions = True
        shape = shapes[-1] if given is None else given
        labels, trained = labels.view_as(shape), trained.view_as(shape)
        hidden = self._derives_inputs and "decoder_input_ids" not in named
        known = None if hidden or not shapes else shapes[-1]
        padded = trained & (labels == self._pad) if self._pad is not None else torch.zeros_like(trained)
        if known is None:
            padded[:, 1:] &= padded[:, :-1].clone()  # end marks may be padding
            padded[:, 0] = False
        else:
            padded &= known == self._pad
            self._judge_shift(shapes, labels, trained)
            mask = named.get("attention_mask")
            if isinstance(mask, Tensor) and mask.shape == known.shape and not self._derives_inputs:
                covered = nn.functional.pad(mask == 0, (0, 1), value=True)
                padded |= trained & covered[:, :-1] & covered[:, 1:]
            self._judge_mean(known, trained, weight)
        if padded.any():
            evidence = f"{int(padded.sum())} of {int(trained.sum())} labels are padding after padding"
            self._say("padding-in-loss", evidence)
        if given is not None:
            self._judge_ignored(given < 0, trained)
        self._judge_rows(trained, given)

    def _labels_of(self, likely: Tensor, clear: Tensor, width: int) -> Tensor:
        """Return the labels that the last loss was called with, all IGNORED if they do not fit the scores.

        Args:
            likely: labels by the gradient (B, T) or (N,).
            clear: positions at which these are known.
            width: of the scores.
        """
        labels = next((labels for known, labels in reversed(self._given) if known == width), likely[:0])
        if likely.dim() == 2 and labels.numel() == likely[:, 1:].numel():  # the last position has none
            labels = nn.functional.pad(labels.view_as(likely[:, 1:]), (0, 1), value=IGNORED)
        fits = labels.numel() == likely.numel()
        if not fits or (labels.view_as(likely) != likely)[clear].float().mean() > 1 - _SHARE:
            return torch.full_like(likely, IGNORED)
        return labels.view_as(likely)

    def _say(self, name: str, evidence: str) -> None:
        self._find(name, evidence, RIGHT_POSITIONS)

    def _judge_sample(self, scores: Tensor, gradient: Tensor, labels: Tensor, trained: Tensor) -> float:
        """Judge rows (N, V) of scores and their gradient; return the mean weight of a position in the loss."""
        scores, gradient = scores[trained].float(), gradient[trained]
        possible = (scores.softmax(-1) > 0.1 / scores.size(-1)) & ~is_sure(scores)[:, None]
        empty = float((gradient == 0)[possible].float().mean())
        if gradient.dtype == torch.float16 and empty > 1 - _SHARE:
            self._say("lost-in-half-precision", f"{empty:.0%} of the gradients of likely tokens are 0 in float16")
        gradient = gradient.float()
        _, weights, nats = read_labels(scores, gradient, labels[trained])
        sums = gradient.sum(-1)  # 0 for scores, minus the weight for log-probabilities
        weights = torch.where(sums < gradient.amin(-1) / 2, -sums, weights)
        mean = float(nats.mean())
        if are_raw(scores, gradient):
            self._say("loss-without-softmax", "scores have a gradient at the labels alone, and are no logarithms")
        self._had_to_learn |= mean > _HIGH_NATS
        self.low = mean if self._had_to_learn and mean < _LOW_NATS else None
        return float(weights.mean())

    def _judge_shift(self, inputs: Sequence[Tensor], labels: Tensor, trained: Tensor) -> None:
        """Compare labels with the inputs around them, all (B, T) or (T, B)."""
        following = [_agreement(ids, labels, trained, 1, axis) for ids in inputs for axis in (0, 1)]
        if max(following) > _SHARE or len(labels[trained].unique()) < 3:
            return
        for offset, name, which in (
            (0, "target-not-shifted", "tokens that the same position reads"),
            (2, "wrong-labels", "second next tokens of the input"),
            (-1, "wrong-labels", "previous tokens of the input"),
        ):
            share = _agreement(inputs[-1], labels, trained, offset, 1)
            if share > _SHARE:
                self._say(name, f"{share:.0%} of the labels are the {which}")

    def _judge_mean(self, ids: Tensor, trained: Tensor, weight: float) -> None:
        """Look for a mean over all positions, though only those that are no padding have labels."""
        count, labels = ids.numel(), int(trained.sum())
        real = int((trained | (ids != self._pad)).sum()) - len(ids)
        whole = any(abs(weight * all_of_them - 1) < _SAME_WEIGHT for all_of_them in (count, count - len(ids)))
        matches = whole and _SHARE * real < labels < _SHARE * count
        self._whole_means = self._whole_means + 1 if matches else 0
        if self._whole_means == _BATCHES:
            evidence = f"a label weighs 1 / {1 / weight:.0f}, which is all positions; {labels} have labels"
            self._say("padding-in-mean", evidence)

    def _judge_ignored(self, ignored: Tensor, trained: Tensor) -> None:
        """Look for labels (B, T) that are marked as ignored, and trained; the model may shift them."""
        shifted = nn.functional.pad(ignored[:, 1:], (0, 1), value=True)
        wrong = min(int((mask & trained).sum()) for mask in (ignored, shifted))
        if wrong > (1 - _SHARE) * int(ignored.sum()):
            self._say("ignored-positions-in-loss", f"the loss reads {wrong} positions whose label is below 0")

    def _judge_rows(self, trained: Tensor, given: Tensor | None) -> None:
        """Look for rows without any label, the same ones in several batches."""
        without = ~trained.any(1) if given is None else ~trained.any(1) & (given >= 0).any(1)
        self._left_out = [*self._left_out, without.tolist()][-_BATCHES:]
        same = len(self._left_out) == _BATCHES and all(rows == self._left_out[0] for rows in self._left_out)
        if same and _ROWS_LEFT_OUT <= float(without.float().mean()) < 1:
            evidence = f"{int(without.sum())} of {len(without)} rows have no label that the loss reads"
            self._say("rows-left-out", evidence)


def _rows(scores: Tensor) -> Tensor:
    """Return some rows (N, V) of scores (B, T, V) or (N, V)."""
    flat = scores.detach().flatten(0, -2)
    return flat[:: len(flat) // _SAMPLE + 1]


def _agreement(ids: Tensor, labels: Tensor, trained: Tensor, offset: int, axis: int) -> float:
    length = ids.size(axis) - abs(offset)
    if length < 1:
        return 0.0
    read = ids.narrow(axis, max(0, offset), length)
    label, counted = (side.narrow(axis, max(0, -offset), length) for side in (labels, trained))
    return float((read == label)[counted].float().mean()) if counted.any() else 0.0


def _is_ids(name: Any, value: Any) -> bool:
    whole = isinstance(value, Tensor) and value.dim() == 2 and value.dtype in (torch.int64, torch.int32)
    return whole and not (isinstance(name, str) and ("label" in name or "mask" in name or "position" in name))


def _is_positions(ids: Tensor) -> bool:
    """Return whether integers (B, T) are positions, a mask or types rather than ids of tokens."""
    return int(ids.max()) < 3 or bool((ids.diff(dim=1) == 1).all())


def hash_of_ids(ids: Tensor) -> int:
    """Return a number that tells a batch of ids from others."""
    factors = torch.arange(1, ids.numel() + 1, device=ids.device) * 2_654_435_761 % 1_000_003
    return int((ids.flatten() * factors).sum()) * ids.numel()
