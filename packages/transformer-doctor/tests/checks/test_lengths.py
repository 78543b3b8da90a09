"""What long texts alone show is named, with the length from which on it does; sound models stay silent."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from specimens.long_range import LEAKS, LongRange, LongSource
from specimens.planted import BOS, EOS, PAD, VOCABULARY
from transformer_doctor import Report, examination, examine
from transformer_doctor.checks import lengths
from transformer_doctor.checks.lengths import FUTURE, SOURCE
from transformer_doctor.preparation import Preparation


def examined(model: Any, **options: Any) -> Report:
    torch.manual_seed(3)
    return examine(model, vocab_size=VOCABULARY, pad=PAD, **{"longest": 600, **options})


@pytest.fixture
def long_texts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask nothing about short texts."""

    def check(prepared: Preparation, *_: Any, longest: int, **options: Any) -> Report:
        return lengths.examine_lengths(prepared.adapter, prepared.samples, longest, None, [])

    monkeypatch.setattr(examination, "_check_outputs", check)


@pytest.mark.usefixtures("long_texts_alone")
@pytest.mark.parametrize(("kind", "size"), LEAKS)
def test_a_look_ahead_at_any_range_is_named_and_its_sound_twin_is_not(kind: str, size: int) -> None:
    for leaks in (True, False):
        torch.manual_seed(3)
        report = examined(LongRange(kind, size, leaks=leaks), kind="decoder", longest=min(max(64, 3 * size), 600))
        assert report.names == ["sees-the-future"] * leaks, report


@pytest.mark.usefixtures("long_texts_alone")
def test_a_look_ahead_in_long_texts_says_from_which_length_on_and_how_far() -> None:
    report = examined(LongRange("strides", 48, leaks=True), kind="decoder")
    (finding,) = report.findings
    assert "in texts of 64 tokens" in finding.evidence
    assert "up to 48 positions ahead" in finding.evidence
    assert "with 37 tokens nothing was seen" in finding.evidence
    assert finding.check == FUTURE
    assert "torch.tril" in finding.cure


@pytest.mark.usefixtures("long_texts_alone")
def test_the_report_says_where_the_time_ended_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = LongRange("chunks", 8, leaks=False)
    monkeypatch.setattr(lengths, "_SECONDS", 0.0)
    report = examined(model, kind="decoder")
    assert FUTURE in report.asked
    assert "up to 13 tokens; longer ones would take more than 0 s" in report.tried[FUTURE]


def test_a_defect_of_short_texts_is_not_asked_for_again() -> None:
    report = examined(LongRange("mean", 1, leaks=True), kind="decoder")
    assert dict(report.skipped)[FUTURE] == "short texts show a defect already"


class NoNumbers(LongRange):
    """Gives NaN for texts of more than 40 tokens."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return super().forward(ids) * (torch.nan if ids.size(1) > 40 else 1.0)


@pytest.mark.usefixtures("long_texts_alone")
def test_scores_of_long_texts_that_are_nan_are_named() -> None:
    report = examined(NoNumbers("mean", 8, leaks=False), kind="decoder")
    assert report.names == ["not-a-number"]
    assert "texts of 64 tokens are NaN; with 37 tokens nothing was seen" in report.findings[0].evidence


@pytest.mark.usefixtures("long_texts_alone")
def test_a_refusal_of_long_texts_ends_the_question_and_is_said() -> None:
    class Refuses(LongRange):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            if ids.size(1) > 40:
                raise ValueError("at most 40 tokens")
            return super().forward(ids)

    report = examined(Refuses("chunks", 8, leaks=False), kind="decoder")
    assert not report.findings
    assert "up to 37 tokens; with 64, the code raised ValueError" in report.tried[FUTURE]


@pytest.mark.usefixtures("long_texts_alone")
@pytest.mark.parametrize(
    ("way", "name", "evidence"),
    [
        ("sound", None, ""),
        ("cut", "silent-cut", "from position 33 on change no score"),
        ("padding", "no-source-padding-mask", "28 tokens and 9 of padding"),
    ],
)
def test_long_sources_are_read_to_their_end_and_without_padding(way: str, name: str | None, evidence: str) -> None:
    report = examined(LongSource(way), bos=BOS, eos=EOS, longest=150)
    assert report.names == [name] * (name is not None), report
    assert SOURCE in report.asked
    assert all(evidence in finding.evidence and finding.check == SOURCE for finding in report.findings)
