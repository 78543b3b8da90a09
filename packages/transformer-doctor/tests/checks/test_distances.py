"""Rotary positions and linear biases that depend on more than the distance are named, in every style."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn

from specimens.planted import PAD, VOCABULARY
from specimens.rotary import ROTARY_DEFECTS, ROTATIONS, LinearBias, Rotary
from specimens.sweep import covering
from specimens.wrong_layers import WrongLayers
from transformer_doctor import Report, examine
from transformer_doctor.checks.distances import DISTANCES


def examined(model: nn.Module) -> Report:
    return examine(model, vocab_size=VOCABULARY, pad=PAD, kind="decoder", longest=32)


@pytest.mark.parametrize(("rotation", "norm"), covering(product(ROTATIONS, [False, True])))
def test_rotary_positions_written_in_other_ways_are_sound(rotation: str, norm: bool) -> None:
    report = examined(Rotary(rotation, norm=norm))
    assert not report.findings
    assert DISTANCES in report.asked


@pytest.mark.parametrize(
    ("defect", "norm", "dtype"), covering(product(ROTARY_DEFECTS, [False, True], [torch.float32, torch.bfloat16]))
)
def test_wrong_rotary_positions_are_named(defect: str, norm: bool, dtype: torch.dtype) -> None:
    report = examined(Rotary("halves", defect, norm=norm).to(dtype))
    assert report.names == ["wrong-distances"], report
    assert ("values of one token" in report.findings[0].evidence) == (defect == "values")


@pytest.mark.parametrize("way", ["distance", "keys", "fused", "reversed"])
def test_a_linear_bias_has_to_favour_near_keys(way: str) -> None:
    report = examined(LinearBias(way))
    assert report.names == ["wrong-distances"] * (way == "reversed")
    assert DISTANCES in report.asked


@pytest.mark.parametrize("empty", [False, True])
def test_frequencies_that_are_all_zero_are_named(empty: bool) -> None:
    """As of a buffer that to_empty() left empty, and that no checkpoint holds."""

    class Waves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, 16)
            self.layers = nn.ModuleList(nn.TransformerEncoderLayer(16, 2, 29, batch_first=True) for _ in range(2))
            self.output = nn.Linear(16, VOCABULARY)
            self.register_buffer("frequencies", 10.0 ** -torch.arange(8), persistent=False)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            angle = torch.arange(ids.size(1))[:, None] * self.frequencies
            x = self.embedding(ids) + torch.cat([angle.sin(), angle.cos()], -1).to(self.embedding.weight)
            later = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
            for layer in self.layers:
                x = layer(x, src_mask=later)
            return self.output(x)

    model = Waves()
    model.frequencies *= not empty
    report = examined(model)
    assert ("no-positions" in report.names) == empty, report
    assert DISTANCES in report.asked


def test_values_that_are_turned_back_afterwards_are_sound() -> None:
    class TurnedBack(Rotary):
        """Values hold their position, which is taken from the result again: only relative positions are left."""

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            scores = super().forward(ids)
            return scores.mean(1, keepdim=True).expand_as(scores) * 0 + self.out(self.tokens(ids))

    assert "wrong-distances" not in examined(TurnedBack("halves", "values")).names


@pytest.mark.parametrize(
    ("way", "evidence"),
    [
        ("rotary over heads", "queries and keys of one token are the same at all positions"),
        ("inverted frequencies", "the fastest angle is 2.57 radians a position, not 1"),
        ("window", ""),
        ("without positions", ""),
    ],
)
def test_angles_of_another_axis_and_of_inverted_frequencies_are_named(way: str, evidence: str) -> None:
    report = examined(WrongLayers(way))
    assert report.names == ["wrong-distances"] * bool(evidence), report
    assert all(evidence in finding.evidence for finding in report.findings)


def test_rotary_positions_that_are_not_recognised_are_listed() -> None:
    class Hidden(WrongLayers):
        """Turns no key, but adds positions to the tokens, so that its rotary module cannot be judged."""

        def __init__(self) -> None:
            super().__init__("without positions")
            self.rotary, self.places = nn.Identity(), nn.Embedding(64, 32)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            places = self.places(torch.arange(ids.size(1)))
            handle = self.embedding.register_forward_hook(lambda *arguments: arguments[-1] + places)
            try:
                return super().forward(ids)
            finally:
                handle.remove()

    report = examined(Hidden())
    assert not report.findings
    assert (DISTANCES, "rotary positions were not recognised") in report.skipped
