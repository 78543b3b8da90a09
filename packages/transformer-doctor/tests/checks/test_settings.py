"""A model that is not as its configuration says is named."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from specimens.planted import PAD, VOCABULARY, D
from specimens.wrong_layers import WrongLayers
from transformer_doctor import examine
from transformer_doctor.checks.settings import SETTINGS

pytestmark = pytest.mark.usefixtures("one_length")


class Configured(nn.Module):
    """A decoder whose configuration states dropout of 0.1 and a tied matrix.

    Args:
        way: "dropout", "attention dropout", "one layer", "one part", "empty places", "untied", or "sound".
    """

    def __init__(self, way: str) -> None:
        super().__init__()
        self.config = SimpleNamespace(dropout=0.1, tie_weights=True)
        self.embedding, self.positions = nn.Embedding(VOCABULARY, D, padding_idx=PAD), nn.Embedding(64, D)
        layers = [nn.TransformerEncoderLayer(D, 2, 29, 0.1, batch_first=True) for _ in range(3)]
        if way == "attention dropout":
            layers[1].self_attn.dropout = 0.3
        for layer in layers if way == "one part" else ():
            layer.linear1 = layers[0].linear1
        self.layers = nn.ModuleList(
            layers[:1] * 3 if way == "one layer" else [*layers, None, None][: 5 if way == "empty places" else 3]
        )
        self.dropout = nn.Dropout(0.5 if way == "dropout" else 0.1)
        self.output = nn.Linear(D, VOCABULARY, bias=False)
        if way != "untied":
            self.output.weight = self.embedding.weight
        self.max_length = 64

    def forward(self, ids: Tensor) -> Tensor:
        x = self.dropout(self.embedding(ids) + self.positions(torch.arange(ids.size(1))))
        later = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
        for layer in filter(None, self.layers):
            x = layer(x, src_mask=later)
        return self.output(x)


@pytest.mark.parametrize(
    ("way", "name", "evidence"),
    [
        ("sound", None, ""),
        ("empty places", None, ""),
        ("dropout", "not-as-configured", "dropout of 0.5 is active; the configuration states dropout = 0.1"),
        ("attention dropout", "not-as-configured", "dropout of 0.3 is active"),
        ("one layer", "layers-are-one-object", "3 of 3 layers of layers are one TransformerEncoderLayer"),
        ("one part", "layers-are-one-object", "linear1 of 3 layers of layers is one Linear"),
        ("untied", "not-as-configured", "tie_weights is True, and the output matrix (23, 16) is not the embedding"),
    ],
)
def test_a_model_that_is_not_as_configured_is_named(way: str, name: str | None, evidence: str) -> None:
    report = examine(Configured(way), vocab_size=VOCABULARY, pad=PAD, kind="decoder", longest=32)
    assert report.names == [name] * (name is not None), report
    assert all(evidence in finding.evidence for finding in report.findings)
    assert SETTINGS in report.asked


@pytest.mark.parametrize(("setting", "found"), [("attention_dropout", []), ("dropout_rate", ["not-as-configured"])])
def test_a_rate_of_zero_in_the_attention_says_nothing_of_other_dropouts(setting: str, found: list[str]) -> None:
    model = Configured("sound")
    model.config = SimpleNamespace(**{setting: 0.0})
    torch.manual_seed(3)
    report = examine(model, vocab_size=VOCABULARY, pad=PAD, kind="decoder", longest=32)
    assert report.names == found


def test_without_a_configuration_nothing_is_said_about_it() -> None:
    model = Configured("untied")
    del model.config
    torch.manual_seed(3)
    report = examine(model, vocab_size=VOCABULARY, pad=PAD, kind="decoder", longest=32)
    assert not report.findings


@pytest.mark.parametrize("reversed_layers", [False, True])
def test_a_window_on_other_layers_than_configured_is_named(reversed_layers: bool) -> None:
    class Windowed(Configured):
        def forward(self, ids: Tensor) -> Tensor:
            x, positions = (
                self.embedding(ids) + self.positions(torch.arange(ids.size(1))),
                torch.arange(ids.size(1)),
            )
            distance = positions[:, None] - positions
            for kind, layer in zip(self.config.layer_types, self.layers, strict=True):
                near = (distance < 7) | ((kind == "full_attention") != reversed_layers)
                x = layer(x, src_mask=~(near & (distance >= 0)))
            return self.output(x)

    model = Windowed("sound")
    model.config = SimpleNamespace(layer_types=["sliding_attention"] * 2 + ["full_attention"], sliding_window=7)
    report = examine(model, vocab_size=VOCABULARY, pad=PAD, kind="decoder", longest=32)
    assert report.names == ["not-as-configured"] * reversed_layers, report
    assert all(
        "0 (sliding_attention), 1 (sliding_attention), 2 (full" in finding.evidence for finding in report.findings
    )


@pytest.mark.parametrize(
    ("way", "name", "evidence"),
    [
        ("sound", None, ""),
        ("parallel", None, ""),
        ("after the sum", None, ""),
        ("a layer less", "parameters-without-gradient", "16 of 51 weights do not enter the scores: layers.2"),
        (
            "first layer each time",
            "parameters-without-gradient",
            "32 of 51 weights do not enter the scores: layers.1",
        ),
        ("norm used twice", "parameters-without-gradient", "layers.0.second_norm, layers.1.second_norm"),
        ("other activation", "not-as-configured", "activation = gelu, and the forward pass calls no such function"),
        ("other epsilon", "not-as-configured", "norm_eps = 1e-06, and norms have 1e-05"),
        ("other number of heads", "not-as-configured", "num_heads = 4, and attentions have 2 heads"),
        (
            "no residual around attention",
            "residual-lost",
            "inside of layers.0, layers.1, layers.2 set to 0, no token",
        ),
        ("no residual around feed-forward", "residual-lost", "inside of layers.0, layers.1, layers.2 set to 0"),
    ],
)
def test_layers_that_are_skipped_or_other_than_stated_are_named(way: str, name: str | None, evidence: str) -> None:
    report = examine(WrongLayers(way), vocab_size=VOCABULARY, pad=PAD, kind="decoder", longest=32)
    assert report.names == [name] * (name is not None), report
    assert all(evidence in finding.evidence for finding in report.findings)
    noted = ("norm used twice", "no residual around attention", "no residual around feed-forward")
    assert all((finding.severity == "note") == (way in noted) for finding in report.findings)
