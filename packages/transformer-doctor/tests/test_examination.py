"""Every defect planted in a user's model is named, alone and in pairs; sound models give no alarm."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import pytest
import torch

from specimens import peers
from specimens.planted import BOS, EOS, MODEL_DEFECTS, PAD, TorchTransformer, Transformer
from specimens.sweep import covering
from transformer_doctor import Report, examine
from transformer_doctor.catalogue import CATALOGUE


def examined(model: torch.nn.Module, vocab_size: int | tuple[int, int] = 23) -> Report:
    return examine(model, vocab_size=vocab_size, pad=PAD, bos=BOS, eos=EOS, longest=128)


def numbers(report: Report) -> set[int | None]:
    """Return the museum numbers of the findings."""
    return {CATALOGUE[name].exhibit for name in report.names}


def pairs(defects: Iterable[int]) -> list[Any]:
    """Return all pairs; a pair whose defects occur in other pairs is marked slow."""
    cases = covering(combinations(defects, 2))
    return [pytest.param(case.values, marks=case.marks) for case in cases]


@pytest.mark.parametrize(
    "defects",
    [(), *combinations(MODEL_DEFECTS, 1), *pairs(MODEL_DEFECTS)],
    ids=lambda defects: "+".join(map(str, defects)) or "none",
)
def test_the_planted_defects_are_found_and_no_others(defects: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    model = Transformer(*defects)
    report = examined(model, model.sizes)
    assert numbers(report) == set(defects), report
    assert report.ok == (not defects)


@pytest.mark.parametrize("name", peers.NAMES)
def test_models_of_hugging_face_give_no_alarm(name: str) -> None:
    torch.manual_seed(3)
    report = examine(peers.make(name))
    assert not report.findings, report
    assert len(report.asked) >= 6


@pytest.mark.parametrize(("norm_first", "bias"), covering(product([True, False], repeat=2)))
@pytest.mark.filterwarnings(
    "ignore:enable_nested_tensor:UserWarning", "ignore:The PyTorch API of nested:UserWarning"
)
def test_nn_transformer_used_correctly_gives_no_alarm(norm_first: bool, bias: bool) -> None:
    torch.manual_seed(3)
    report = examined(TorchTransformer(norm_first=norm_first, bias=bias))
    assert not report.findings, report


@pytest.mark.parametrize("defects", [*combinations((3, 4, 9, 16, 17), 1), *pairs((3, 4, 9, 16, 17))])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested:UserWarning")
def test_defects_planted_around_nn_transformer_are_found(defects: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    model = TorchTransformer(*defects)
    report = examined(model, model.sizes)
    assert numbers(report) == set(defects), report
