"""A whole project, examined: each of the 18 defects by itself, pairs of unlike kinds, and none at all.

All 153 pairs are tried by `python -m benchmarks.doctor`; those inside the model also by test_examination.py.
"""

from __future__ import annotations

import pytest
import torch
from tests.doctor.whole import Project, numbers

# Pairs that meet: in the same function, or one hiding what the other shows.
PAIRS = [
    (1, 11),
    (1, 14),
    (11, 14),
    (14, 16),
    (5, 13),
    (2, 6),
    (12, 13),
    (3, 14),
    (9, 14),
    (5, 17),
    (1, 18),
    (10, 15),
]
# Checks of what the project has no function for.
NOT_GIVEN = {
    "results do not depend on padding before the text",
    "step-by-step decoding gives the scores of teacher forcing",
}


@pytest.mark.parametrize(
    "defects",
    [(), *((number,) for number in range(1, 19)), *PAIRS],
    ids=lambda defects: "+".join(map(str, defects)) or "none",
)
@pytest.mark.slow
def test_a_project_is_told_exactly_what_was_planted_in_it(defects: tuple[int, ...], training_seed: int) -> None:
    torch.manual_seed(training_seed)
    report = Project(*defects).examined()
    assert numbers(report) == set(defects), report
    assert {check for check, _ in report.skipped} == NOT_GIVEN


@pytest.mark.parametrize("defect", ["unseeded-split", "vocabulary-from-test-set", "wrong-tokenizer/same-text"])
def test_defects_of_data_that_no_exhibit_shows_are_named(defect: str, training_seed: int) -> None:
    torch.manual_seed(training_seed)
    assert Project(defect).examined().names == [defect.partition("/")[0]]
