"""Defects planted in a user's model are named, alone and in pairs; sound models give no alarm."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens import peers
from specimens.planted import BOS, EOS, PAD, Embedding, TorchTransformer, Transformer
from transformer_doctor import Report, examine
from transformer_doctor.catalogue import CATALOGUE
from transformer_doctor.errors import UsageError

MARKS: dict[str, Any] = {"vocab_size": 23, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 64}
D, H = 16, 2
E = D // H
# Pairs of defects in the same function; each defect of the model is in one.
PAIRS = [(3, 9), (3, 17), (4, 16), (7, 8), (9, 18), (10, 18)]


def examined(model: Any, **options: Any) -> Report:
    torch.manual_seed(2)
    return examine(model, **MARKS | options)


def numbers(report: Report) -> set[int | None]:
    """Return the museum numbers of the findings."""
    return {CATALOGUE[name].exhibit for name in report.names}


@pytest.mark.parametrize(
    ("make", "defects"),
    [
        (Transformer, ()),
        *((Transformer, pair) for pair in PAIRS),
        (TorchTransformer, (3, 9)),
        (TorchTransformer, (17,)),
    ],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested:UserWarning")
def test_the_planted_defects_are_found_and_no_others(make: type[Any], defects: tuple[int, ...]) -> None:
    model = make(*defects)
    report = examine(model, **MARKS | {"vocab_size": model.sizes, "longest": 128})
    assert numbers(report) == set(defects), report
    assert report.ok == (not defects)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.filterwarnings(
    "ignore:enable_nested_tensor:UserWarning", "ignore:The PyTorch API of nested:UserWarning"
)
def test_nn_transformer_used_correctly_gives_no_alarm(norm_first: bool) -> None:
    assert not examined(TorchTransformer(norm_first=norm_first, bias=norm_first)).findings


@pytest.mark.parametrize("name", ["bart", "bert2bert", "roberta", "gpt2-eager", "t5-eager"])
def test_models_of_hugging_face_give_no_alarm(name: str) -> None:
    report = examine(peers.make(name))
    assert not report.findings, report
    assert len(report.asked) >= 6


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
    return examined(Written(style), kind="decoder")


@pytest.mark.parametrize("style", ["plain", "three axes", "where", "assigned"])
def test_other_styles_of_writing_attention_give_no_alarm(style: str) -> None:
    report = examine_style(style)
    assert report.ok
    assert not report.findings or style == "assigned"  # -inf at a padded first key would leave a row empty


@pytest.mark.usefixtures("one_length")
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
    assert {other for other, weight in found.items() if weight != "note"} <= {name, "sees-the-future"}, found


@pytest.mark.usefixtures("one_length")
def test_scores_that_are_nan_are_named() -> None:
    class Empty(Written):
        def masked(self, scores: Tensor, hidden: Tensor) -> Tensor:
            return scores.masked_fill(torch.ones_like(hidden), -math.inf)

    assert "not-a-number" in examined(Empty("plain"), kind="decoder").names


@pytest.mark.usefixtures("one_length")
def test_a_mask_that_one_head_lacks_is_named() -> None:
    class OneHead(Written):
        def masked(self, scores: Tensor, hidden: Tensor) -> Tensor:
            hidden = hidden.clone()
            hidden[:, 1] = False
            return scores.masked_fill(hidden, -math.inf)

    report = examined(OneHead("plain"), kind="decoder")
    assert report.names == ["sees-the-future"]
    assert "self-attention 1 of 1 with a mask that some heads lack" in report.findings[0].evidence


@pytest.mark.usefixtures("one_length")
def test_left_padding_is_checked_on_request() -> None:
    assert examined(Transformer(), left_padding=True).names == ["depends-on-left-padding"]


class EncodeDecode:
    """Object with encode and decode that is no nn.Module."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def encode(self, source: Tensor) -> tuple[Tensor, int]:
        return source, 0

    def decode(self, target: Tensor, memory: Tensor, nothing: int) -> Tensor:
        return self.model(memory, target)


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize("how", ["parts", "masks", "time first"])
def test_a_model_may_be_given_in_other_ways(how: str) -> None:
    model = Transformer(9).eval()

    def with_masks(source: Tensor, target: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
        assert (source_mask.shape, target_mask.shape) == (source.shape, target.shape)
        return model(source, target)

    ways: dict[str, tuple[Any, dict[str, Any]]] = {
        "parts": (EncodeDecode(model), {}),
        "masks": (with_masks, {"masks": lambda source, target: (source != PAD, target != PAD)}),
        "time first": (lambda source, target: model(source.t(), target.t()).transpose(0, 1), {"time_first": True}),
    }
    given, options = ways[how]
    assert examined(given, **options).names == ["no-source-padding-mask"]


def test_a_stated_length_limit_is_no_defect_and_an_unstated_limit_is_found_exactly() -> None:
    class StatesLimit(Transformer):
        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            if max(source.size(1), target.size(1)) > 50:
                raise ValueError("at most 50 tokens")
            return super().forward(source, target)

    model = Transformer(16)
    assert "sources of 50 tokens go through, of 51 raise IndexError" in examined(model).findings[0].evidence
    model.target_embedding.max_length = 50
    assert not examined(model).findings
    assert not examined(StatesLimit(16)).findings


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


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(
    ("style", "names"),
    [("sound", []), ("no look-ahead mask", ["sees-the-future"]), ("mask on queries", ["padding-mask-on-queries"])],
)
def test_a_model_that_cannot_be_traced_is_judged_by_its_outputs(style: str, names: list[str]) -> None:
    # a share of 1e-9 of a later token is far below the threshold of a change
    assert examined(Untraceable(style), kind="decoder").names == names


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


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(("what", "name"), [("future", "sees-the-future"), ("padding", "depends-on-the-batch")])
def test_leaks_that_only_gradients_show_are_named(what: str, name: str) -> None:
    report = examined(GradientLeak(what))
    assert report.names == [name], report
    assert "gradient" in report.findings[0].evidence


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(("defect", "output_first"), [(False, True), (True, False), (True, True)])
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

    report = examined(Encoder(), bos=None, eos=None, kind="encoder")
    assert report.names == ["dropout-on-residual"] * defect


def test_scores_of_all_positions_but_one_get_advice() -> None:
    class Shortened(Transformer):
        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            return super().forward(source, target[:, :-1])

    with pytest.raises(UsageError, match=r"lambda source, target: model\(source, torch.cat\(\[target, target"):
        examined(Shortened())


class Fails:
    """Functions that raise an exception: each in its own line, and a stepper that raises it in one method."""

    def __init__(self, where: str = "") -> None:
        self.where = where

    def __call__(self, *values: Any) -> Any:
        raise KeyError("here")

    def step(self, tokens: Tensor) -> Tensor:
        return self() if self.where == "step" else torch.zeros(len(tokens), 23)

    def reorder(self, rows: Tensor) -> None:
        self()

    def masks(self, ids: Tensor) -> tuple[()]:
        return self() if (ids == PAD).any() else ()


class Constant(nn.Module):
    """Decoder whose scores depend on the last token alone, as those of a decoder with a cache of nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(23, 23)

    def forward(self, target: Tensor) -> Tensor:
        return self.embedding(target)


def learn(model: nn.Module, target: Tensor) -> Tensor:
    loss = functional.cross_entropy(model(target[:, :-1]).flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
    loss.backward()
    return loss


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize("name", ["stepper", "train_step", "collate", "greedy", "score", "masks"])
def test_an_exception_of_a_given_function_is_an_error_at_its_line(name: str) -> None:
    model = Constant()
    given: dict[str, Any] = {"stepper": lambda ids: Fails("step"), "masks": Fails().masks}
    options = {name: given.get(name, Fails())}
    if name in ("collate", "greedy", "score"):
        options = {"train_step": lambda target: learn(model, target)} | options
    report = examined(model, kind="decoder", updates=1, **options)
    finding = next(finding for finding in report.findings if finding.name == "raises-an-error")
    assert (finding.severity, finding.evidence) == ("error", f"{name} raised KeyError: 'here'")
    assert str(finding.place).endswith(f"test_examination.py:{line_of('raise KeyError')}")
    assert "KeyError: 'here'" in dict(report.skipped)[finding.check]


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(
    ("refused", "severities"),
    [(lambda ids: (ids == PAD).any(), ["warning"]), (lambda ids: ids.size(1) not in (4, 5), [])],
)
def test_a_model_that_raises_on_padded_rows_is_named_and_one_of_few_lengths_is_not(
    refused: Callable[[Tensor], Any], severities: list[str]
) -> None:
    class Refuses(Constant):
        def forward(self, target: Tensor) -> Tensor:
            if refused(target):
                raise LookupError
            return super().forward(target)

    found = [
        finding for finding in examined(Refuses(), kind="decoder").findings if finding.name == "raises-an-error"
    ]
    assert [finding.severity for finding in found] == severities
    assert all(str(finding.place).endswith(f":{line_of('raise LookupError')}") for finding in found)


def line_of(text: str) -> int:
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)
