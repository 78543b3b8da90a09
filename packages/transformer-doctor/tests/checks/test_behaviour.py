"""Unequal rows, the number of tokens that follow, and tokens that an encoder does not read are judged."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from specimens.planted import PAD, VOCABULARY
from specimens.watched_trainings import Writer
from transformer_doctor import examine
from transformer_doctor.checks.behaviour import CAUSAL

pytestmark = pytest.mark.usefixtures("one_length")


class Reader(nn.Module):
    """An encoder with one layer: whose padding is hidden, what else is, and where the class is read."""

    def __init__(self, padding: str = "own", read: str = "tokens", causal: bool = False) -> None:
        super().__init__()
        self.padding, self.read, self.causal = padding, read, causal
        self.words, self.places = nn.Embedding(VOCABULARY, 16), nn.Embedding(64, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, VOCABULARY if read == "tokens" else 3)

    def forward(self, ids: Tensor) -> Tensor:
        padded, length = ids == PAD, ids.size(1)
        lengths = (~padded).sum(1)
        hidden = padded
        if self.padding == "first row":
            hidden = padded[:1].expand_as(padded)
        if self.padding == "longest row":
            hidden = (torch.arange(length) >= lengths.max()).expand_as(padded)
        ahead = torch.ones(length, length, dtype=torch.bool).triu(1) if self.causal else None
        states = self.words(ids) + self.places(torch.arange(length))
        states = self.layer(states, src_mask=ahead, src_key_padding_mask=hidden)
        if self.read == "tokens":
            return self.head(states)
        if self.read == "mean":
            return self.head((states * ~padded[..., None]).sum(1) / lengths[:, None])
        place = lengths - 1 if self.read == "last" else torch.zeros_like(lengths)
        return self.head(states[torch.arange(len(ids)), place])


@pytest.mark.parametrize("read", ["tokens", "mean"])
@pytest.mark.parametrize("padding", ["first row", "longest row"])
def test_a_mask_of_one_row_for_all_is_named(padding: str, read: str) -> None:
    report = examine(Reader(padding, read), vocab_size=VOCABULARY, pad=PAD, kind="encoder")
    assert report.names == ["depends-on-the-batch"]
    assert "one row of the batch" in report.findings[0].cause


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (Reader(read="first", causal=True), ["tokens-not-read"]),
        (Reader(read="last", causal=True), []),
        (Reader(read="first"), []),
        (Reader(read="mean"), []),
        (Reader(), []),
    ],
)
def test_a_class_of_one_token_alone_is_named(model: nn.Module, names: list[str]) -> None:
    assert examine(model, vocab_size=VOCABULARY, pad=PAD, kind="encoder").names == names


def test_an_encoder_that_reads_no_later_token_is_noted() -> None:
    report = examine(Reader(causal=True), vocab_size=VOCABULARY, pad=PAD, kind="encoder")
    assert [(finding.name, finding.severity, finding.evidence) for finding in report.findings] == [
        ("tokens-not-read", "note", CAUSAL)
    ]


class FromTheEnd(Writer):
    """Counts positions from the last token, or divides its scores by the length of the text."""

    def __init__(self, way: str) -> None:
        super().__init__(dropout=0.0)
        self.way = way

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        places, length = self.places.weight, ids.size(1)
        shift = places[length - 1 - torch.arange(length)] - places[:length]
        hidden = self.words(ids) + places[:length] + shift * (self.way == "positions")
        causal = nn.Transformer.generate_square_subsequent_mask(length)
        for layer in self.layers:
            hidden = layer(hidden, src_mask=causal, is_causal=True)
        places_before = torch.arange(1, length + 1)[:, None]
        sizes = {"scale": length, "own scale": places_before}
        return self.head(hidden) / sizes.get(self.way, 1)


class Keeping(FromTheEnd):
    """Divides its scores by the length of the longest text so far, or keeps what it counts and does not use it."""

    longest = 0

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        self.longest = max(self.longest, ids.size(1))
        return super().forward(ids) / (1 + (self.way == "kept") * max(self.longest - 30, 0))


@pytest.mark.parametrize(("way", "names"), [("kept", ["random-in-evaluation"]), ("", [])])
def test_what_a_longer_text_leaves_behind_is_named(way: str, names: list[str]) -> None:
    assert examine(Keeping(way), vocab_size=31, kind="decoder", longest=16).names == names


@pytest.mark.parametrize("way", ["positions", "scale"])
def test_scores_that_depend_on_the_length_are_named(way: str) -> None:
    assert examine(FromTheEnd(way), vocab_size=31, kind="decoder").names == ["depends-on-the-length"]


@pytest.mark.parametrize("way", ["", "own scale"])
def test_positions_and_scales_that_count_from_the_first_token_are_sound(way: str) -> None:
    assert examine(FromTheEnd(way), vocab_size=31, kind="decoder").names == []


class Faint(FromTheEnd):
    """Adds to its scores a trace of the number of tokens."""

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        return super().forward(ids) + 2e-5 * ids.size(1) * self.head.weight[:, 0]


def test_effects_below_the_rounding_of_float32_are_seen_in_small_models() -> None:
    assert examine(Faint(""), vocab_size=31, kind="decoder").names == ["depends-on-the-length"]
