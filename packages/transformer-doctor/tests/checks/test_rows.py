"""What the loss of a row depends on in a training step is found; sound trainings have no finding."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from specimens import unusual_trainings
from specimens.plain_trainings import PLANTED, SOUND, Writer, writing
from transformer_doctor import Report, examine
from transformer_doctor.checks import rows
from transformer_doctor.checks.learning import _ROWS

pytestmark = [pytest.mark.usefixtures("few_updates", "training_alone"), pytest.mark.filterwarnings("ignore")]
OF_ROWS = (
    "no causal mask", "positions zero", "evaluation mode", "evaluation mode kept", "first rows only",
    "last row only", "sources shifted", "packed", "left padding",
)  # fmt: skip
STYLES = (
    "frozen base", "frozen source", "shuffled", "packed, masked", "left padding, counted", "gpt2",
    "micro-batches of two rows, by tokens", "own guesses",
)  # fmt: skip
NOT_ASKED = {"frozen base": "no gradient reaches the embeddings"}


def examined(training: str) -> Report:
    torch.manual_seed(1)
    make = SOUND[training] if training in SOUND else PLANTED[training][0]
    return examine(**make())


@pytest.mark.parametrize("defect", OF_ROWS)
def test_a_defect_of_rows_is_named_without_others(defect: str) -> None:
    assert examined(defect).names == [PLANTED[defect][1]]


def test_positions_that_the_model_itself_sets_to_zero_in_training_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = Writer.forward
    monkeypatch.setattr(
        Writer,
        "forward",
        lambda self, ids, *_: usual(self, ids, None, torch.arange(ids.size(1)) * (not self.training)),
    )
    torch.manual_seed(1)
    assert "no-positions" in examine(**writing()).names


@pytest.mark.parametrize("style", STYLES)
def test_a_sound_training_has_no_finding_and_every_row_is_asked(style: str) -> None:
    report = examined(style)
    assert report.names == [], report
    reasons = dict(report.skipped)
    assert _ROWS in report.asked or reasons[_ROWS] == NOT_ASKED[style]


def test_losses_under_autocast_may_differ_by_its_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "SAME_NATS", 0.0)
    assert examined("autocast").names == []


@pytest.mark.parametrize("training", unusual_trainings.SOUND)
def test_unusual_heads_losses_and_positions_have_no_finding(training: str) -> None:
    torch.manual_seed(1)
    assert examine(**unusual_trainings.SOUND[training]()).names == []


@pytest.mark.parametrize(("shift", "name"), [(0, "target-not-shifted"), (2, "wrong-labels")])
def test_labels_that_are_wrong_in_several_heads_are_named(shift: int, name: str) -> None:
    torch.manual_seed(1)
    loss = partial(unusual_trainings.several, shift=shift)
    assert name in examine(**unusual_trainings.unusual(unusual_trainings.Heads, loss)).names
