"""Scores are logits that depend on tokens, on the order of tokens, and on the token at their own position."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from specimens import peers, unusual_models
from specimens.planted import BOS, EOS, PAD, VOCABULARY, Embedding, Transformer
from transformer_doctor import Report, examine
from transformer_doctor.checks.dependence import depends_on_own_token
from transformer_doctor.model_adapter import Samples
from transformer_doctor.wrapping import wrap_model

pytestmark = pytest.mark.usefixtures("one_length")
DTYPES = (torch.float32, torch.bfloat16)


def examined(model: nn.Module) -> Report:
    return examine(model, vocab_size=VOCABULARY, kind="decoder", longest=64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_probabilities_instead_of_logits_are_named(dtype: torch.dtype) -> None:
    assert examined(unusual_models.Probabilities().to(dtype)).names == ["scores-are-probabilities"]


def test_constant_scores_are_named_and_checks_that_they_defeat_are_skipped() -> None:
    report = examined(unusual_models.ConstantScores(causal=False).bfloat16())
    assert "constant-scores" in report.names
    skipped = dict(report.skipped)
    assert skipped["no position depends on later target tokens"] == "the scores do not depend on the tokens"
    assert "results do not depend on source padding" not in skipped  # a decoder has no source


class Orderless(Transformer):
    """Reads its source as a set, because the encoder has no positions."""

    def __init__(self) -> None:
        super().__init__()

        class Tokens(Embedding):
            def forward(self, ids: Tensor) -> Tensor:
                return self.tokens(ids) * self.scale

        self.source_embedding = Tokens(VOCABULARY, frozenset())


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_encoder_without_positions_is_named(dtype: torch.dtype) -> None:
    options = {"vocab_size": VOCABULARY, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 64}
    report = examine(Orderless().to(dtype), **options)
    assert report.names == ["no-positions"]
    assert "source tokens in another order" in report.findings[0].evidence
    assert report.findings[0].severity == "warning"


def test_positions_that_hardly_change_the_scores_of_a_new_model_are_recognised() -> None:
    """With rotary positions and small initial weights, another order of tokens changes the scores by 1e-6."""
    assert examine(peers.make("modernbert")).names == []


def test_one_layer_without_positions_is_named_and_two_causal_layers_are_sound() -> None:
    assert examined(unusual_models.NanoGPT(layers=1, positions=False)).names == ["no-positions"]
    assert not examined(unusual_models.NanoGPT(layers=2, positions=False)).findings


def test_weak_positions_are_recognised() -> None:
    model = unusual_models.NanoGPT(layers=1)
    nn.init.normal_(model.wpe.weight, std=1e-4)
    assert not examined(model).findings


@pytest.mark.parametrize("fill", [-torch.inf, -1e9])
def test_a_suppressed_token_hides_no_defect(fill: float) -> None:
    assert not examined(unusual_models.NeverPadding(fill)).findings
    assert examined(unusual_models.NeverPadding(fill, causal=False)).names == ["sees-the-future"]


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        (unusual_models.NanoGPT(), True),
        (unusual_models.NanoGPT("head", "projections"), True),
        (unusual_models.NanoGPT().bfloat16(), True),
        (unusual_models.ShiftsInput(), False),
        (unusual_models.ShiftsInput("head").bfloat16(), False),
        (unusual_models.ConstantScores(), None),
    ],
)
def test_the_dependence_of_a_score_on_the_token_at_its_position_is_found(
    model: nn.Module, answer: bool | None
) -> None:
    adapter = wrap_model(
        model, vocab_size=VOCABULARY, pad=PAD, bos=BOS, eos=EOS, kind="decoder", masks=None, time_first=False
    )
    assert model.training
    assert depends_on_own_token(adapter, Samples(adapter)) is answer
    assert model.training


class Coarse(Transformer):
    """Returns NaN in double precision, like code whose masks are made for float32."""

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        scores = super().forward(source, target)
        return scores * torch.nan if scores.dtype == torch.float64 else scores


class Undefined(Coarse):
    """Returns NaN for texts of more than eight tokens."""

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        scores = super().forward(source, target)
        return scores * torch.nan if source.size(1) > 8 else scores


def test_the_order_of_tokens_is_not_judged_by_scores_that_are_nan() -> None:
    options = {"vocab_size": VOCABULARY, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 64}
    report = examine(Coarse(), **options)
    assert report.names == []
    assert "scores depend on the order of the tokens" in report.asked
    report = examine(Undefined(), **options)
    assert "no-positions" not in report.names
    skipped = ("scores depend on the order of the tokens", "scores of 9 source tokens are NaN or infinite")
    assert skipped in report.skipped
