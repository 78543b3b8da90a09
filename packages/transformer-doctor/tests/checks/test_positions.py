"""Sinusoids of the paper are distinguished from other sinusoids and from other tables."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from specimens.unusual_models import LONGEST, NanoGPT
from transformer_doctor import examine
from transformer_doctor.checks.positions import sinusoid_findings

L, D = 64, 30
STEPS = torch.arange(L)[:, None]


def table(base: float = 10_000, last: float = D / 2, start: int = 0) -> Tensor:
    angles = (start + torch.arange(L)[:, None]) * base ** (-torch.arange(D // 2) / last)
    return torch.cat([angles.sin(), angles.cos()], -1)


@pytest.mark.parametrize(
    "sound",
    [
        table(),
        table(last=D / 2 - 1),
        table(start=2),
        3 * table() + torch.randn(D),
        table(base=100_000),
        table().unflatten(1, (2, -1)).transpose(1, 2).flatten(1),
        table().bfloat16(),
        table()[:, torch.randperm(D)],
        torch.nn.functional.pad(table(), (0, 1)),
    ],
    ids=["halves", "D/2 - 1", "from 2", "scaled", "base", "interleaved", "bfloat16", "shuffled", "odd width"],
)
def test_sound_sinusoids_have_no_fault(sound: Tensor) -> None:
    assert not list(sinusoid_findings({"source": sound}))


@pytest.mark.parametrize("seed", range(5))
def test_learned_and_random_tables_are_no_sinusoids(seed: int) -> None:
    torch.manual_seed(seed)
    for other in (torch.randn(L, D), table() + 0.3 * torch.randn(L, D), torch.randn(L, D).cumsum(0), 0 * table()):
        assert not list(sinusoid_findings({"source": other}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (table(base=1e8), "base 1e+08"),
        (table(base=100), "base 100"),
        (torch.cat([table()[:, : D // 2]] * 2, -1), "not a sine and a cosine each"),
        (table()[:, : D // 2], "a sine without a cosine"),
        (torch.cat([f(STEPS * torch.linspace(1, 0.1, 15)) for f in (torch.sin, torch.cos)], -1),
         "no geometric progression"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_fault_of_wrong_sinusoids_is_named(wrong: Tensor, message: str, dtype: torch.dtype) -> None:
    (finding,) = sinusoid_findings({"source": wrong.to(dtype)})
    assert finding.name == "wrong-sinusoids"
    assert message in finding.evidence


class SilentEnd(NanoGPT):
    """Looks up other positions beyond the end of its table."""

    def __init__(self, way: str, *, states_limit: bool) -> None:
        super().__init__()
        self.way = way
        if not states_limit:
            del self.block_size

    def forward(self, ids: Tensor) -> Tensor:
        positions = torch.arange(ids.size(1))
        positions = positions.clamp(max=LONGEST - 1) if self.way == "clamped" else positions % LONGEST
        x = self.wte(ids) + self.wpe(positions)
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


@pytest.mark.parametrize(("way", "states_limit"), [("clamped", True), ("repeated", False)])
def test_positions_that_end_silently_are_named(way: str, states_limit: bool) -> None:
    model = SilentEnd(way, states_limit=states_limit)
    report = examine(model, vocab_size=23, pad=0, kind="decoder", longest=100)
    assert report.names == ["position-limit"]
    assert "positions have 64 different embeddings" in report.findings[0].evidence
