"""Models in common styles are called correctly, or refused with advice."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.planted import BOS, EOS, PAD, Trainer, Transformer
from transformer_doctor import Report, examine
from transformer_doctor.errors import UsageError
from transformer_doctor.model_adapter import find_modules

SIZE = 23


def examined(model: Any, **options: Any) -> Report:
    torch.manual_seed(3)
    return examine(model, **{"vocab_size": SIZE, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 64, **options})


class Flat(nn.Module):
    """Logits (B * T, V), as some loss functions want them."""

    def __init__(self, *defects: int) -> None:
        super().__init__()
        self.model = Transformer(*defects)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.model(source, target).flatten(0, 1)


class Interleaved(Transformer):
    """Model whose signature alternates ids and masks."""

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor) -> Tensor:
        return super().forward(source, target)


class WithTable(Transformer):
    """Model with an argument whose role cannot be inferred."""

    def forward(self, source: Tensor, target: Tensor, table: Tensor) -> Tensor:
        return super().forward(source, target)


class Classifier(nn.Module):
    """Ids (B, S) -> scores of classes (B, C), from the mean of the embeddings that are not padding."""

    def __init__(self, *, masked: bool) -> None:
        super().__init__()
        self.embedding, self.output, self.masked = nn.Embedding(SIZE, 16), nn.Linear(16, 3), masked

    def forward(self, source: Tensor) -> Tensor:
        real = (source != PAD if self.masked else torch.ones_like(source, dtype=torch.bool))[..., None]
        return self.output((self.embedding(source) * real).sum(1) / real.sum(1))


def test_flat_logits_are_unflattened() -> None:
    assert examined(Flat(9)).names == ["no-source-padding-mask"]


def test_a_function_is_put_into_eval_through_the_modules_it_names() -> None:
    model = Interleaved()
    assert model.training

    def call(source: Tensor, target: Tensor) -> Tensor:
        return model(source, source != PAD, target, target != PAD)

    assert examined(call).ok
    assert model.training


def test_the_modules_of_functions_methods_and_objects_are_found() -> None:
    model, other = nn.Linear(2, 3), nn.Linear(3, 5)
    trainer = Trainer(nn.Sequential(model))
    assert (
        find_modules(model)
        is find_modules(lambda x: model(x))
        is find_modules(functools.partial(model.forward))
        is model
    )
    assert find_modules(lambda x: trainer.model(x)) is find_modules(trainer.step) is trainer.model
    inner = lambda x: other(model(x))  # noqa: E731
    both = find_modules(lambda x: inner(x))
    assert isinstance(both, nn.ModuleList)
    assert set(both) == {model, other}
    assert find_modules(lambda x: functional.relu(x)) is None


def test_the_evidence_for_a_function_without_a_module_says_that_eval_was_not_called() -> None:
    forward = Transformer().forward
    hidden = {"forward": forward}
    (finding,) = examined(lambda source, target: hidden["forward"](source, target)).findings
    assert finding.name == "random-in-evaluation"
    assert "call it before" in finding.evidence


@pytest.mark.parametrize(("masked", "names"), [(True, []), (False, ["no-source-padding-mask"])])
def test_classifiers_are_examined(masked: bool, names: list[str]) -> None:
    """A mean of embeddings ignores the order of tokens, which may be intended: a note."""
    report = examined(Classifier(masked=masked), kind="encoder")
    assert report.names == [*names, "no-positions"]
    assert report.ok == masked


class Raises(nn.Module):
    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        raise KeyError("mask")


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (WithTable, {}, "takes 3 arguments.*what table should hold.*masks=.*lambda source, target: model"),
        (Transformer, {"vocab_size": (SIZE, 99)}, "IndexError.*98 on the target side.*vocab_size"),
        (Transformer, {"vocab_size": 4}, "too few are left that are no marks"),
        (Transformer, {"pad": 40}, "pad = 40 is no id of the source side"),
        (lambda: lambda source, target: None, {}, "NoneType, in which no scores.*returns the logits"),
        (lambda: "model", {}, "str can neither be called.*lambda source, target"),
        (lambda: nn.Transformer(16, 2, 1, 1, batch_first=True), {}, "takes no token ids"),
        (lambda: lambda source, target: source * 1.0, {"vocab_size": None}, r"scores of shape \(3, 7\)"),
        (Raises, {"vocab_size": None}, r"^the model raised KeyError: 'mask' \(test_wrap.*vocab_size"),
        (lambda: lambda s, t: torch.zeros(*t.t().shape, SIZE), {}, "time_first=True"),
        (Transformer, {"greedy": lambda source: source}, "give train_step too"),
    ],
)
def test_a_model_that_cannot_be_called_is_refused_with_advice(
    model: Callable[[], Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        examined(model(), **options)
