"""Every defect of a training step, planted alone in public styles of code, is named; sound code has no finding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.doctor.sweep import covering
from tests.doctor.training_projects import PROJECTS

from manyheads.doctor import Report, examine
from manyheads.doctor.checks.learning import UPDATES

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SOUND = [(project, "") for project in PROJECTS]
PLANTED = [(project, defect) for project, (_, defects) in PROJECTS.items() for defect in defects]


def examine_project(project: str, defect: str, dtype: str) -> Report:
    torch.manual_seed(1)
    made: Any = PROJECTS[project][0](defect)
    made.model.to(DTYPES[dtype])
    return examine(**made.arguments())


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("project", "defect"), [*SOUND, *covering(PLANTED)])
@pytest.mark.filterwarnings("ignore")
def test_a_planted_defect_is_named_without_others(project: str, defect: str, dtype: str) -> None:
    report = examine_project(project, defect, dtype)
    assert [finding.name for finding in report.findings if finding.severity != "note"] == [defect] * bool(defect)
    assert UPDATES in report.asked
