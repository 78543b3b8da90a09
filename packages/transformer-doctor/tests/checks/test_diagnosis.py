"""Each wrong mask, scale, softmax axis and sinusoid is named in models whose attention is written differently."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from specimens.hosts import STYLES, D, Host, Plan
from specimens.planted import BOS, EOS, PAD, VOCABULARY, Transformer
from specimens.unusual_models import NanoGPT
from transformer_doctor import Report, examine
from transformer_doctor.checks.masks import _PHRASES
from transformer_doctor.texts import FINDING_TEXTS

MARKS: dict[str, Any] = {"vocab_size": VOCABULARY, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 64}
NAMES = {"missing": "unusual-scale", "twice": "unusual-scale", "width": "scaled-by-model-width"}


def examined(style: str, plan: Plan, dtype: torch.dtype = torch.float32) -> Report:
    torch.manual_seed(3)
    return examine(Host(STYLES[style], plan).to(dtype), **MARKS)


def serious(report: Report) -> list[str]:
    return [finding.name for finding in report.findings if finding.severity != "note"]


def evidence(report: Report, name: str) -> str:
    return next(finding.evidence for finding in report.findings if finding.name == name)


@pytest.mark.parametrize(
    ("style", "plan", "dtype"),
    [
        ("einsum", Plan(), torch.float32),
        ("heads", Plan(), torch.bfloat16),
        ("torch", Plan(), torch.float32),
        ("fused", Plan(positions="halves"), torch.float32),
        ("folded", Plan(), torch.float32),
        ("by hand", Plan(positions="tensor2tensor", tied="t5"), torch.float32),
    ],
)
def test_a_sound_model_gives_no_alarm(style: str, plan: Plan, dtype: torch.dtype) -> None:
    assert serious(examined(style, plan, dtype)) == []


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(
    ("style", "look_ahead", "padding", "scale"),
    [
        ("einsum", "absent", "late", "missing"),
        ("einsum", "multiplied", "absent", "missing"),
        ("heads", "inverted", "multiplied", "twice"),
        ("torch", "wide", "absent", ""),
        ("fused", "added", "inverted", ""),
        ("folded", "late", "queries", "missing"),
        ("by hand", "wide", "added", "width"),
    ],
)
def test_every_wrong_mask_and_scale_of_a_style_is_named_beside_others(
    style: str, look_ahead: str, padding: str, scale: str
) -> None:
    report = examined(style, Plan(look_ahead, padding, scale))
    expected = {"sees-the-future", "no-source-padding-mask", *([NAMES[scale]] if scale else [])}
    assert set(serious(report)) == expected, report
    assert f"; decoder self-attention 1 of 1 {_PHRASES[look_ahead]}" in evidence(report, "sees-the-future")
    observed = evidence(report, "no-source-padding-mask")
    assert f"encoder self-attention 1 of 1 {_PHRASES[padding]}" in observed
    assert f"cross-attention 1 of 1 {_PHRASES['absent' if padding == 'queries' else padding]}" in observed


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(
    ("style", "plan", "dtype", "name"),
    [
        ("einsum", Plan(axis="queries"), torch.float32, "softmax-axis"),
        ("heads", Plan(axis="queries"), torch.float32, "softmax-axis"),
        ("folded", Plan(axis="heads"), torch.bfloat16, "softmax-axis"),
        ("by hand", Plan(axis="queries"), torch.float32, "softmax-axis"),
        ("einsum", Plan(tied="up"), torch.float32, "tied-logits-scaled"),
        ("torch", Plan(tied="down"), torch.bfloat16, "tied-logits-scaled"),
    ],
)
def test_a_softmax_over_another_axis_and_scaled_tied_logits_are_named(
    style: str, plan: Plan, dtype: torch.dtype, name: str
) -> None:
    assert serious(examined(style, plan, dtype)) == [name]


class WrittenNorm(torch.nn.Module):
    """A layer norm as in The Annotated Transformer, or an RMSNorm as in language models."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.weight = kind, torch.nn.Parameter(torch.ones(D))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "layer":
            return self.weight * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(
    ("norm", "positions", "named", "dtype"),
    [
        ("layer", "", [], torch.bfloat16),
        ("layer", "one frequency each", ["wrong-sinusoids"], torch.float32),
        ("rms", "exponent", ["wrong-sinusoids"], torch.bfloat16),
        ("of torch", "sign", ["wrong-sinusoids"], torch.bfloat16),
    ],
)
def test_wrong_sinusoids_are_named_before_a_norm_of_torch_or_one_that_is_written_out(
    norm: str, positions: str, named: list[str], dtype: torch.dtype
) -> None:
    model = Host(STYLES["einsum"], Plan(positions=positions))
    for layer in (model.encoder, model.decoder) if norm != "of torch" else ():
        layer.norms = torch.nn.ModuleList(WrittenNorm(norm) for _ in layer.norms)
    report = examine(model.to(dtype), **MARKS)
    assert serious(report) == named


class ConstantOutput(torch.nn.Module):
    """A sublayer whose output is constant, so that the memory holds nothing of the source."""

    def forward(self, x: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        return torch.full_like(x, 0.5)


@pytest.mark.usefixtures("one_length")
def test_a_constant_memory_is_not_taken_for_a_mask() -> None:
    model = Transformer()
    model.sublayers[1] = ConstantOutput()
    report = examine(model.bfloat16(), **MARKS)
    assert serious(report) == ["source-not-read"]


def test_the_cause_the_cure_and_the_line_fit_the_fault() -> None:
    (finding,) = (each for each in examined("einsum", Plan(look_ahead="late")).findings if each.severity == "error")
    assert "after the softmax" in finding.cause
    assert "before the softmax" in finding.cure
    assert "소프트맥스 뒤" in finding.translate("ko").cause
    assert finding.place is not None
    assert finding.place.path.endswith("tests/specimens/hosts.py")


class BothSides(NanoGPT):
    """A mask that hides padded queries as well as padded keys, with a finite fill: padding does no harm."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        real = ids != PAD
        later = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
        hide = later | ~(real[:, :, None] & real[:, None, :])
        x = self.wte(ids) + self.wpe(torch.arange(ids.size(1)))
        for block in self.blocks:
            q, k, v = block.c_attn(block.ln_1(x)).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
            scores = (q @ k.mT * 8**-0.5).masked_fill(hide[:, None], -1e9)
            x = x + block.c_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
            x = x + block.mlp(block.ln_2(x))
        return self.lm_head(self.ln_f(x))


def test_a_mask_of_padded_queries_and_keys_gives_no_alarm() -> None:
    report = examine(BothSides(), kind="decoder", **MARKS)
    assert serious(report) == []
    assert report.names == ["mask-fill"]  # -1e9, a note


def test_a_decoder_alone_without_a_look_ahead_mask_is_named() -> None:
    report = examine(NanoGPT(causal=False), kind="decoder", **MARKS)
    assert serious(report) == ["sees-the-future"]
    assert "; self-attention 2 of 2 without a mask" in evidence(report, "sees-the-future")


class Limited(NanoGPT):
    """Learned positions for eight tokens; longer texts raise an assertion that says so, or an IndexError."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self.wpe, self.message = torch.nn.Embedding(8, 16), message
        torch.nn.init.normal_(self.wpe.weight, std=0.02)
        del self.block_size

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        assert not self.message or ids.size(1) <= 8, self.message
        return super().forward(ids)


@pytest.mark.parametrize(("message", "severity"), [("at most 8 tokens", "note"), ("", "warning")])
def test_a_short_length_limit_is_a_note_where_the_error_states_it_and_else_a_warning(
    message: str, severity: str
) -> None:
    report = examine(Limited(message), kind="decoder", **MARKS)
    assert [(finding.name, finding.severity) for finding in report.findings] == [("position-limit", severity)]
    assert "attention is scaled, masked and projected as in the paper" in report.asked


class OverTime(nn.Module):
    """A norm whose mean and deviation run over the positions of a text."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-5)


@pytest.mark.usefixtures("one_length")
def test_where_the_masks_are_right_the_cure_is_not_a_mask() -> None:
    model = Transformer()
    model.output = nn.Sequential(OverTime(), model.output)  # type: ignore[assignment]
    (finding,) = [each for each in examine(model, **MARKS).findings if each.name == "sees-the-future"]
    assert finding.cause == FINDING_TEXTS["en"]["cases"]["future-in-layer"]["cause"]


def test_a_source_that_is_read_in_reverse_is_not_called_a_wrong_mask() -> None:
    class Reversed(Transformer):
        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            return super().forward(source.flip(1), target)

    report = examine(Reversed(), **MARKS)
    assert "depends-on-left-padding" in report.names
    assert "no-source-padding-mask" not in report.names


class LinearAttention(nn.Module):
    """Causal attention by sums of keys and values, stabilised by a maximum of keys, as in a Performer."""

    def __init__(self, stable: tuple[int, ...]) -> None:
        super().__init__()
        self.stable = stable
        self.qkv = nn.Linear(D, 3 * D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = (q - q.amax(-1, keepdim=True)).exp() + 1e-4, (k - self.maximum(k)).exp() + 1e-4
        sums = torch.einsum("btm,bte->btme", k, v).cumsum(1)
        return torch.einsum("btm,btme->bte", q, sums) / (q * k.cumsum(1)).sum(-1, keepdim=True)

    def maximum(self, k: Tensor) -> Tensor:
        return k.amax(self.stable, keepdim=True) if self.stable else torch.zeros(())


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(("stable", "names"), [((1, 2), ["sees-the-future"]), ((2,), []), ((), [])])
def test_a_maximum_over_the_keys_is_not_called_a_missing_mask(stable: tuple[int, ...], names: list[str]) -> None:
    places = nn.Parameter(torch.randn(64, D))
    tokens, mix, head = nn.Embedding(VOCABULARY, D), LinearAttention(stable), nn.Linear(D, VOCABULARY)

    def model(ids: Tensor) -> Tensor:
        x = tokens(ids) + places[: ids.size(1)]
        return head(x + mix(x))

    report = examine(model, kind="decoder", **MARKS)
    assert report.names == names
    assert [found.cause for found in report.findings] == [
        FINDING_TEXTS["en"]["cases"]["future-in-layer"]["cause"]
    ] * len(names)
