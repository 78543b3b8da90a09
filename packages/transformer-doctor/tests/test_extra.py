"""Defects that the museum does not show, and models that are called in other ways."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.planted import BOS, EOS, PAD, Embedding, Transformer
from transformer_doctor import Report, examine
from transformer_doctor.errors import UsageError

MARKS: dict[str, Any] = {"vocab_size": 23, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 64}
D, H = 16, 2
E = D // H


class Written(nn.Module):
    """One causal self-attention with matrix products; `style` names a defect or another way to write it."""

    def __init__(self, style: str) -> None:
        super().__init__()
        self.embedding = Embedding(23, frozenset())
        self.project = nn.Linear(D, 3 * D)
        self.norm = nn.BatchNorm1d(D) if style == "batch norm" else nn.LayerNorm(D)
        self.output = nn.Linear(D, 23)
        self.style = style

    def forward(self, target: Tensor) -> Tensor:
        style, (batch, length) = self.style, target.shape
        x = self.embedding(target)
        if style == "functional dropout":
            x = functional.dropout(x, 0.1)
        q, k, v = (part.unflatten(-1, (H, E)).transpose(1, 2) for part in self.project(x).chunk(3, -1))
        q = q * (0.7 if style == "unusual scale" else E**-0.5)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        padded = (target == PAD)[:, None, None, :].expand(batch, H, length, length)
        hidden = padded & ~torch.eye(length, dtype=torch.bool) if style == "no look-ahead" else later | padded
        if style == "three axes":
            scores = torch.bmm(q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2)).unflatten(0, (batch, H))
        else:
            scores = q @ k.transpose(-1, -2)
        scores = self.masked(scores, hidden)
        weights = scores.softmax(-1)
        if style == "averaged":  # over the whole length, so later positions leak into it
            v = v - v.mean(2, keepdim=True)
        x = x + (weights @ v).transpose(1, 2).flatten(2)
        if style == "batch norm":
            return self.output(functional.batch_norm(x.flatten(0, 1), None, None, training=True).view_as(x))
        return self.output(self.norm(x))

    def masked(self, scores: Tensor, hidden: Tensor) -> Tensor:
        if self.style == "added":
            return scores + torch.zeros_like(scores).masked_fill(hidden, -1e4)
        if self.style == "where":
            return torch.where(hidden, torch.finfo(scores.dtype).min, scores)
        if self.style == "assigned":
            scores = scores.clone()
            scores[hidden] = -math.inf
            return scores
        fill = {"huge": -1e20, "moderate": -1e4}.get(self.style, -math.inf)
        return scores.masked_fill(hidden, fill)


def examine_style(style: str) -> Report:
    torch.manual_seed(2)
    return examine(Written(style), **MARKS, kind="decoder")


@pytest.mark.parametrize("style", ["plain", "three axes", "where", "assigned"])
def test_other_styles_of_writing_attention_give_no_alarm(style: str) -> None:
    if style == "assigned":  # -inf at a padded first key would leave a row empty
        assert examine_style(style).ok
    else:
        assert not examine_style(style).findings


@pytest.mark.parametrize(
    ("style", "name", "severity"),
    [
        ("functional dropout", "random-in-evaluation", "error"),
        ("unusual scale", "unusual-scale", "note"),
        ("no look-ahead", "sees-the-future", "error"),
        ("averaged", "sees-the-future", "error"),
        ("batch norm", "depends-on-the-batch", "error"),
        ("huge", "mask-fill", "note"),
        ("moderate", "mask-fill", "note"),
        ("added", "mask-fill", "note"),
    ],
)
def test_further_defects_are_named(style: str, name: str, severity: str) -> None:
    found = {finding.name: finding.severity for finding in examine_style(style).findings}
    assert found.get(name) == severity, found
    assert set(found) <= {name, "sees-the-future"}, found


def test_a_model_that_does_not_read_its_source_is_named() -> None:
    class IgnoresSource(Transformer):
        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            return super().forward(source.where(source == PAD, 5), target)

    torch.manual_seed(2)
    assert examine(IgnoresSource(), **MARKS).names == ["source-not-read"]


def test_a_batch_axis_that_is_read_as_time_is_named() -> None:
    class TimeFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = Embedding(23, frozenset())
            self.layer = nn.TransformerEncoderLayer(D, H, 29)

        def forward(self, source: Tensor) -> Tensor:
            return self.layer(self.embedding(source))

    torch.manual_seed(2)
    report = examine(TimeFirst(), vocab_size=23, kind="encoder", longest=64)
    assert report.names == ["rows-mixed"], report


def test_scores_that_are_nan_are_named() -> None:
    class Empty(Written):
        def masked(self, scores: Tensor, hidden: Tensor) -> Tensor:
            return scores.masked_fill(torch.ones_like(hidden), -math.inf)

    torch.manual_seed(2)
    assert "not-a-number" in examine(Empty("plain"), **MARKS, kind="decoder").names


def test_left_padding_is_checked_on_request() -> None:
    torch.manual_seed(2)
    model = Transformer()
    assert not examine(model, **MARKS).findings
    assert examine(model, **MARKS, left_padding=True).names == ["depends-on-left-padding"]


class EncodeDecode:
    """Object with encode and decode that is no nn.Module."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def encode(self, source: Tensor) -> tuple[Tensor, int]:
        return source, 0

    def decode(self, target: Tensor, memory: Tensor, nothing: int) -> Tensor:
        return self.model(memory, target)


@pytest.mark.parametrize("how", ["function", "parts", "masks", "tuple", "time first"])
@pytest.mark.parametrize("defect", [None, 9])
def test_a_model_may_be_called_in_many_ways(how: str, defect: int | None) -> None:
    torch.manual_seed(2)
    model = Transformer(*[] if defect is None else [defect]).eval()

    def with_masks(source: Tensor, target: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
        assert source_mask.shape == source.shape
        assert target_mask.shape == target.shape
        return model(source, target)

    ways: dict[str, tuple[Any, dict[str, Any]]] = {
        "function": (lambda source, target: model(source, target), {}),
        "parts": (EncodeDecode(model), {}),
        "masks": (with_masks, {"masks": lambda source, target: (source != PAD, target != PAD)}),
        "tuple": (lambda source, target: (model(source, target), None), {}),
        "time first": (lambda source, target: model(source.t(), target.t()).transpose(0, 1), {"time_first": True}),
    }
    given, options = ways[how]
    assert examine(given, **MARKS, **options).names == ([] if defect is None else ["no-source-padding-mask"])


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (nn.Transformer(D, H, 1, 1, batch_first=True), {}, "takes no token ids"),
        (lambda source, target: source * 1.0, {"vocab_size": None}, "vocab_size is missing"),
        (lambda source, target, table: None, {}, "takes 3 arguments .*what table should hold"),
        ("model", {}, "str can neither be called"),
        (Transformer(), {"greedy": lambda source: source}, "give train_step too"),
        (lambda source, target: None, {"train_step": print, "masks": None}, "returned NoneType"),
        (lambda source, target: "text", {}, "returned str, in which no scores"),
        (lambda s, t: torch.zeros(*t.t().shape, 23), {}, "time_first=True"),
    ],
)
def test_a_model_that_cannot_be_examined_is_refused_with_the_argument_that_helps(
    model: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        examine(model, **MARKS | options)


def test_a_stated_length_limit_is_no_defect_and_an_unstated_limit_is_found_exactly() -> None:
    torch.manual_seed(2)
    model = Transformer(16)
    assert "sources of 50 tokens go through, of 51 raise IndexError" in examine(model, **MARKS).findings[0].evidence
    model.target_embedding.max_length = 50
    assert not examine(model, **MARKS).findings


def test_an_error_that_states_the_length_limit_is_no_defect() -> None:
    class StatesLimit(Transformer):
        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            if max(source.size(1), target.size(1)) > 50:
                raise ValueError("at most 50 tokens")
            return super().forward(source, target)

    torch.manual_seed(2)
    assert not examine(StatesLimit(16), **MARKS).findings


class Untraceable(nn.Module):
    """A decoder that the tracer cannot read: one-hot tokens times a matrix, and a softmax written out."""

    def __init__(self, style: str) -> None:
        super().__init__()
        self.rows, self.positions = nn.Parameter(torch.randn(23, D)), nn.Parameter(torch.randn(64, D))
        self.output = nn.Linear(D, 23)
        self.style = style

    def forward(self, target: Tensor) -> Tensor:
        length = target.size(1)
        x = functional.one_hot(target, 23).to(self.rows.dtype) @ self.rows + self.positions[:length]
        seen = torch.ones(length, length).tril()[None]
        if self.style == "no look-ahead mask":
            seen = torch.ones_like(seen)
        if self.style == "mask on queries":
            seen = seen * (target != PAD)[:, :, None] + 1e-9
        weights = (x @ x.transpose(1, 2) / D**0.5).exp() * seen
        return self.output(x + weights / weights.sum(-1, keepdim=True) @ x)


@pytest.mark.parametrize(
    ("style", "names"),
    [("sound", []), ("no look-ahead mask", ["sees-the-future"]), ("mask on queries", ["padding-mask-on-queries"])],
)
def test_a_model_that_cannot_be_traced_is_judged_by_its_outputs(style: str, names: list[str]) -> None:
    torch.manual_seed(2)
    # a share of 1e-9 of a later token is far below the threshold of a change
    assert examine(Untraceable(style), **MARKS, kind="decoder").names == names


class GradientLeak(Transformer):
    """Adds a term to the scores that is zero but has a gradient from hidden tokens."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.embedded: dict[str, Tensor] = {}
        for side, part in (("source", self.source_embedding), ("target", self.target_embedding)):
            part.tokens.register_forward_hook(lambda _, __, output, side=side: self.embedded.update({side: output}))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        scores = super().forward(source, target)
        if self.what == "future":
            leak = self.embedded["target"].sum((1, 2))
        else:
            leak = (self.embedded["source"] * (source == PAD)[:, :, None]).sum((1, 2))
        return scores + (leak - leak.detach())[:, None, None]


@pytest.mark.parametrize(("what", "name"), [("future", "sees-the-future"), ("padding", "depends-on-the-batch")])
def test_leaks_that_only_gradients_show_are_named(what: str, name: str) -> None:
    torch.manual_seed(2)
    report = examine(GradientLeak(what), **MARKS)
    assert report.names == [name], report
    assert "gradient" in report.findings[0].evidence


def test_a_mask_that_one_head_lacks_is_named() -> None:
    class OneHead(Written):
        def masked(self, scores: Tensor, hidden: Tensor) -> Tensor:
            hidden = hidden.clone()
            hidden[:, 1] = False
            return scores.masked_fill(hidden, -math.inf)

    torch.manual_seed(2)
    report = examine(OneHead("plain"), **MARKS, kind="decoder")
    assert report.names == ["sees-the-future"]
    assert "self-attention 1 of 1 with a mask that some heads lack" in report.findings[0].evidence


@pytest.mark.parametrize("output_first", [False, True])
@pytest.mark.parametrize("defect", [False, True])
def test_dropout_on_the_residual_is_found_for_both_orders_of_the_sum(defect: bool, output_first: bool) -> None:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.drop, self.norm = Embedding(23, frozenset()), nn.Dropout(0.1), nn.LayerNorm(D)
            self.attention, self.linear = nn.MultiheadAttention(D, H, batch_first=True), nn.Linear(D, D)

        def add(self, x: Tensor, output: Tensor) -> Tensor:
            output = output if defect else self.drop(output)
            summed = self.norm(output + x if output_first else x + output)
            return self.drop(summed) if defect else summed

        def forward(self, source: Tensor) -> Tensor:
            x = self.drop(self.embedding(source))  # dropout of the embeddings is correct
            x = self.add(x, self.attention(x, x, x, key_padding_mask=source == PAD)[0])
            return self.add(x, self.linear(x))

    torch.manual_seed(2)
    report = examine(Encoder(), vocab_size=23, pad=PAD, kind="encoder", longest=64)
    assert report.names == ["dropout-on-residual"] * defect
