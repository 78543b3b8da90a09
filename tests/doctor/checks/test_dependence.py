"""What scores are, and what they depend on: the order of the tokens, the token that is fed, any token at all."""

from __future__ import annotations

import pytest
import torch
from tests.doctor import library_models, strange
from tests.doctor.planted import BOS, EOS, PAD, VOCABULARY, Embedding, Transformer
from torch import Tensor, nn

from manyheads.doctor import Report, examine
from manyheads.doctor.checks.dependence import depends_on_own_token
from manyheads.doctor.model_adapter import Samples
from manyheads.doctor.wrapping import wrap_model

DTYPES = (torch.float32, torch.bfloat16)


def examined(model: nn.Module) -> Report:
    return examine(model, vocab_size=VOCABULARY, kind="decoder", longest=64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_probabilities_are_no_scores(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    assert examined(strange.Softmaxed().to(dtype)).names == ["scores-are-probabilities"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_that_depend_on_no_token_are_named_and_what_they_hide_is_not_taken_for_sound(
    dtype: torch.dtype,
) -> None:
    torch.manual_seed(3)
    report = examined(strange.Constant(causal=False).to(dtype))
    assert "constant-scores" in report.names
    skipped = dict(report.skipped)
    assert skipped["no position depends on later target tokens"] == "the scores do not depend on the tokens"
    assert "results do not depend on source padding" not in skipped  # a decoder has no source


class Orderless(Transformer):
    """Reads its source as a set: without positions there."""

    def __init__(self) -> None:
        super().__init__()

        class Tokens(Embedding):
            def forward(self, ids: Tensor) -> Tensor:
                return self.tokens(ids) * self.scale

        self.source_embedding = Tokens(VOCABULARY, frozenset())


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float64])
def test_an_encoder_without_positions_is_named(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    options = {"vocab_size": VOCABULARY, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 64}
    report = examine(Orderless().to(dtype), **options)
    assert report.names == ["no-positions"]
    assert "source tokens in another order" in report.findings[0].evidence
    assert report.findings[0].severity == "warning"
    assert not examine(Transformer().to(dtype), **options).findings


def test_positions_that_hardly_change_the_scores_of_a_new_model_are_seen() -> None:
    """Rotary positions between matrices that are drawn small: another order changes the scores by 1e-6."""
    torch.manual_seed(0)
    assert examine(library_models.make("ForMaskedLM modernbert")).names == []


def test_a_single_layer_without_positions_is_named_and_several_layers_count_by_their_mask() -> None:
    torch.manual_seed(3)
    assert examined(strange.NanoGPT(layers=1, positions=False)).names == ["no-positions"]
    assert not examined(strange.NanoGPT(layers=2, positions=False)).findings
    assert not examined(strange.NanoGPT(layers=1)).findings


def test_weak_positions_are_positions() -> None:
    torch.manual_seed(3)
    model = strange.NanoGPT(layers=1)
    nn.init.normal_(model.wpe.weight, std=1e-4)
    assert not examined(model).findings


@pytest.mark.parametrize("fill", [-torch.inf, -1e9])
def test_a_suppressed_token_hides_nothing(fill: float) -> None:
    torch.manual_seed(3)
    assert not examined(strange.Suppressing(fill)).findings
    assert examined(strange.Suppressing(fill, causal=False)).names == ["sees-the-future"]


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        (strange.NanoGPT(), True),
        (strange.NanoGPT("head", "projections"), True),
        (strange.NanoGPT().bfloat16(), True),
        (strange.Shifting(), False),
        (strange.Shifting("head").bfloat16(), False),
        (strange.Constant(), None),
    ],
)
def test_whether_a_score_depends_on_the_token_that_is_fed_there(model: nn.Module, answer: bool | None) -> None:
    adapter = wrap_model(
        model, vocab_size=VOCABULARY, pad=PAD, bos=BOS, eos=EOS, kind="decoder", masks=None, time_first=False
    )
    assert model.training
    assert depends_on_own_token(adapter, Samples(adapter)) is answer
    assert model.training


class Coarse(Transformer):
    """Gives NaN in double precision, as code does whose masks are made for float32."""

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        scores = super().forward(source, target)
        return scores * torch.nan if scores.dtype == torch.float64 else scores


class Undefined(Coarse):
    """Gives NaN for texts that are longer than others."""

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        scores = super().forward(source, target)
        return scores * torch.nan if source.size(1) > 8 else scores


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_order_of_tokens_is_not_judged_by_scores_that_are_nan(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    options = {"vocab_size": VOCABULARY, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 64}
    report = examine(Coarse().to(dtype), **options)
    assert report.names == []
    assert "scores depend on the order of the tokens" in report.asked
    report = examine(Undefined(), **options)
    assert "no-positions" not in report.names
    said = ("scores depend on the order of the tokens", "scores of 9 source tokens are NaN or infinite")
    assert said in report.skipped
