"""Texts that are packed in a row and see each other are named."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from specimens.watched_trainings import Writer
from transformer_doctor import Report, examine
from transformer_doctor.checks.packing import PACKED

pytestmark = pytest.mark.usefixtures("one_length")


class Packed(Writer):
    """Tells texts apart in one of several ways; keys that `hide` says are hidden in every layer."""

    def __init__(self, way: str) -> None:
        super().__init__(dropout=0.0)
        self.way = way

    def scores(self, ids: Tensor, places: Tensor, hide: Tensor, numbers: Tensor | None = None) -> Tensor:
        x = self.words(ids) + self.places(places)
        x = x if numbers is None else x + self.places(numbers)
        hide = hide | torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
        for layer in self.layers:
            x = layer(x, src_mask=hide.repeat_interleave(2, 0))
        return self.head(x)


class ByNumbers(Packed):
    def forward(self, ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:  # type: ignore[override]
        numbers = torch.ones_like(ids) if segment_ids is None else segment_ids
        time = torch.arange(ids.size(1)).expand_as(ids)
        starts = torch.where(numbers.diff(dim=1, prepend=numbers[:, :1]) != 0, time, 0).cummax(1).values
        places = time - starts if self.way in ("sound", "late", "restart") else time
        seen = nn.functional.pad(numbers[:, :-1], (1, 0), value=1) if self.way == "late" else numbers
        hide = seen[:, :, None] != numbers[:, None]
        hide = hide & (self.way in ("sound", "late", "go on"))
        return self.scores(ids, places, hide, segment_ids if self.way == "embedding" else None)


class ByPositions(Packed):
    def forward(  # type: ignore[override]
        self, ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None
    ) -> Tensor:
        time = torch.arange(ids.size(1)).expand_as(ids)
        places = time if position_ids is None else position_ids
        texts = (places.diff(dim=1, prepend=places[:, :1]) < 0).cumsum(1)
        told = self.way == "sound" or (self.way == "mask" and attention_mask is None)
        return self.scores(ids, places, (texts[:, :, None] != texts[:, None]) & told)


def examined(model: nn.Module) -> Report:
    return examine(model, vocab_size=31, pad=0, kind="decoder", longest=32)


@pytest.mark.parametrize(
    ("way", "seen"),
    [
        ("sound", None),
        ("embedding", None),
        ("ignored", "the scores are the same"),
        ("restart", "positions begin again"),
        ("late", "a part of what segment_ids tells apart is hidden"),
    ],
)
def test_texts_told_apart_by_numbers_that_see_each_other_are_named(way: str, seen: str | None) -> None:
    report = examined(ByNumbers(way))
    assert report.names == ([] if seen is None else ["packed-texts-mixed"]), report
    assert seen is None or seen in report.findings[0].evidence
    assert PACKED in report.asked


def test_positions_that_go_on_behind_a_hidden_text_are_a_note() -> None:
    report = examined(ByNumbers("go on"))
    assert [(finding.name, finding.severity) for finding in report.findings] == [("packed-texts-mixed", "note")]


@pytest.mark.parametrize(("way", "names"), [("sound", []), ("never", []), ("mask", ["packed-texts-mixed"])])
def test_texts_told_apart_by_positions_are_hidden_with_a_mask_too(way: str, names: list[str]) -> None:
    report = examined(ByPositions(way))
    assert report.names == names, report
    assert (PACKED in report.asked) == (way != "never")
