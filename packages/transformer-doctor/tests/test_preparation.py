"""Models are examined in any precision, initialization and state, and are left unchanged."""

from __future__ import annotations

import copy
import re
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from specimens import peers, unusual_models
from specimens.planted import BOS, EOS, PAD, VOCABULARY, TorchTransformer, Trainer, Transformer
from specimens.sweep import covering
from transformer_doctor import Report, examine

HALVES = (torch.bfloat16, torch.float16)
MARKS: dict[str, Any] = {"vocab_size": VOCABULARY, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 64}


def contents(model: nn.Module) -> dict[str, tuple[torch.dtype, int, bytes]]:
    """Return dtype, identity and bits of every weight and buffer."""
    return {
        name: (each.dtype, id(each), each.detach().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
        for name, each in [*model.named_parameters(), *model.named_buffers()]
    }


def examined(model: nn.Module, **options: Any) -> Report:
    """Examine a model, a decoder by default, and check that it is left bit-identical."""
    before, state = contents(model), {name: value for name, value in vars(model).items() if name[0] != "_"}
    report = examine(model, **{"vocab_size": VOCABULARY, "kind": "decoder", "longest": 64} | options)
    assert contents(model) == before
    assert {name: value for name, value in vars(model).items() if name[0] != "_"} == state
    return report


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(("name", "dtype"), covering(product(["bert", "t5", "gpt2"], HALVES)))
def test_half_precision_gives_no_alarm_and_is_stated(name: str, dtype: torch.dtype) -> None:
    report = examined(peers.make(name).to(dtype), kind=None, vocab_size=None)
    assert not report.findings, report
    assert any("examined in float32" in remark for remark in report.remarks)


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(
    ("make", "defects", "names", "dtype"),
    covering(
        (make, defects, names, dtype)
        for make in (Transformer, TorchTransformer)
        for defects, names in (
            ((), []),
            ((3,), ["padding-mask-on-queries"]),
            ((9,), ["no-source-padding-mask"]),
            ((17,), ["mask-fill"]),
        )
        for dtype in (*HALVES, torch.float64)
    ),
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_defects_are_named_in_every_precision(
    make: type[nn.Module], defects: tuple[int, ...], names: list[str], dtype: torch.dtype
) -> None:
    assert examined(make(*defects).to(dtype), **MARKS | {"kind": None}).names == names


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(("causal", "dtype"), [(True, torch.bfloat16), (False, torch.float16)])
def test_a_model_that_runs_in_one_precision_only_is_examined_in_that_precision(
    causal: bool, dtype: torch.dtype
) -> None:
    report = examined(unusual_models.FixedPrecision(dtype, causal=causal))
    assert report.names == ([] if causal else ["sees-the-future"])
    assert any("does not run in float32" in remark for remark in report.remarks)
    assert ("scores depend on the order of the tokens", "the model computes in half precision") in report.skipped


@pytest.mark.usefixtures("one_length")
def test_autocast_inside_a_model_widens_the_tolerances() -> None:
    class Autocast(unusual_models.NanoGPT):
        def forward(self, ids: Tensor) -> Tensor:
            with torch.autocast("cpu", torch.bfloat16):
                return super().forward(ids)

    for causal in (True, False):
        torch.manual_seed(3)
        assert examined(Autocast(causal=causal)).names == ([] if causal else ["sees-the-future"])


@pytest.mark.usefixtures("one_length")
def test_scores_that_overflow_in_half_precision_are_named() -> None:
    class Large(unusual_models.NanoGPT):
        def forward(self, ids: Tensor) -> Tensor:
            scores = super().forward(ids)
            return scores + 1e6 * scores - 1e6 * scores.mean()

    model = Large()
    nn.init.normal_(model.lm_head.weight)
    report = examined(model.half())
    assert report.names == ["not-a-number"]
    assert "in float16, the precision of the weights" in report.findings[0].evidence


@pytest.mark.usefixtures("one_length")
@pytest.mark.parametrize(
    ("zero", "causal", "dtype"),
    covering(
        product(
            [("head",), ("projections",), ("head", "projections"), ("tied", "projections")],
            [True, False],
            [torch.float32, torch.bfloat16],
        )
    ),
)
def test_zero_weights_hide_no_defect(zero: tuple[str, ...], causal: bool, dtype: torch.dtype) -> None:
    report = examined(unusual_models.NanoGPT(*zero, causal=causal).to(dtype))
    assert report.names == ([] if causal else ["sees-the-future"]), report
    assert any("all zero were given small random numbers" in remark for remark in report.remarks)


@pytest.mark.usefixtures("one_length")
def test_gates_frozen_weights_and_heads_of_encoder_decoders_may_be_zero() -> None:
    assert examined(unusual_models.ReZero(causal=False)).names == ["sees-the-future"]
    model = Transformer(9)
    nn.init.zeros_(model.output.weight).requires_grad_(False)
    assert examined(model, **MARKS | {"kind": None}).names == ["no-source-padding-mask"]


def test_zero_weights_are_restored_after_an_error_too() -> None:
    class Failing(unusual_models.NanoGPT):
        def forward(self, ids: Tensor) -> Tensor:
            if ids.size(1) == 9:
                raise KeyboardInterrupt
            return super().forward(ids)

    model = Failing("head").bfloat16()
    before = contents(model)
    with pytest.raises(KeyboardInterrupt):
        examine(model, vocab_size=VOCABULARY, kind="decoder")
    assert contents(model) == before


@pytest.mark.parametrize("where", ["dict", "attribute"])
def test_state_that_a_model_keeps_between_calls_is_stated_and_restored(where: str) -> None:
    model = unusual_models.Stateful(where)
    report = examined(model)
    assert not report.findings, report
    assert any("keeps something between calls" in remark for remark in report.remarks)
    assert (model.table, model.cache) == ({}, None)


@pytest.mark.parametrize(
    ("make", "remark", "causal"),
    [
        (unusual_models.FixedLength, r"target ids \(3, 16\)", False),
        (unusual_models.SqueezesBatch, "a batch of one row raises IndexError", True),
        (unusual_models.OneRow, r"target ids \(1, 5\)", False),
    ],
)
def test_models_that_refuse_the_usual_sizes_are_examined_with_others(
    make: type[unusual_models.NanoGPT], remark: str, causal: bool
) -> None:
    report = examined(make(causal=causal))
    assert report.names == ([] if causal else ["sees-the-future"]), report
    assert any(re.search(remark, each) for each in report.remarks)


def test_a_short_length_limit_shortens_the_texts_of_the_checks() -> None:
    report = examined(unusual_models.ShortLimit(9), **MARKS | {"kind": None})
    assert report.names == ["no-source-padding-mask", "position-limit"], report
    assert "results do not depend on source padding" in report.asked
    assert "scores depend on the order of the tokens" in report.asked


@pytest.mark.usefixtures("one_length")
@pytest.mark.usefixtures("few_updates")
@pytest.mark.parametrize(
    ("dtype", "defects", "names"),
    [(torch.bfloat16, (), []), (torch.float16, (5,), ["target-not-shifted", "lost-in-half-precision"])],
)
def test_a_training_step_in_half_precision_is_examined(
    dtype: torch.dtype, defects: tuple[int, ...], names: list[str]
) -> None:
    model = Transformer().to(dtype)
    trainer = Trainer(model, *defects)
    report = examined(model, **MARKS | {"kind": None}, train_step=trainer.step, collate=trainer.collate)
    assert report.names == names, report
    assert "labels are the next tokens, from the first to the end mark" in report.asked


@pytest.mark.usefixtures("few_updates", "training_alone")
def test_a_step_that_fails_in_float32_is_examined_in_its_own_precision() -> None:
    """Adam keeps no moments of the step that failed, here at an average of the weights in bfloat16."""
    model = Transformer().bfloat16()
    trainer, average = Trainer(model, rate=1e-3), copy.deepcopy(model)

    def step(source: torch.Tensor, target: torch.Tensor) -> float:
        loss = trainer.step(source, target)
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(weight, 0.01)
        return loss

    report = examined(model, **MARKS | {"kind": None}, train_step=step, collate=trainer.collate)
    assert report.names == [], report
    assert "labels are the next tokens, from the first to the end mark" in report.asked
