"""Every defect of a training step, planted alone in public styles of code, is named; sound code has no finding."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from specimens.sweep import covering
from specimens.training_projects import PROJECTS
from transformer_doctor import examine
from transformer_doctor.checks.learning import _UPDATES

SOUND = [(project, "") for project in PROJECTS]
PLANTED = [(project, defect) for project, (_, defects) in PROJECTS.items() for defect in defects]


def examine_project(project: str, defect: str, dtype: torch.dtype) -> list[str]:
    """Return the names of the findings that are no notes."""
    torch.manual_seed(1)
    made: Any = PROJECTS[project][0](defect)
    made.model.to(dtype)
    report = examine(**made.arguments())
    assert _UPDATES in report.asked
    return [finding.name for finding in report.findings if finding.severity != "note"]


@pytest.mark.parametrize(("project", "defect"), [*SOUND, *covering(PLANTED)])
@pytest.mark.filterwarnings("ignore")
def test_a_planted_defect_is_named_without_others(project: str, defect: str) -> None:
    assert examine_project(project, defect, torch.float32) == [defect] * bool(defect)


@pytest.mark.parametrize(
    ("project", "defect"), [*SOUND, *(case.values for case in covering(PLANTED) if not case.marks)]
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_every_kind_of_defect_is_named_in_bfloat16_too(project: str, defect: str) -> None:
    assert examine_project(project, defect, torch.bfloat16) == [defect] * bool(defect)
