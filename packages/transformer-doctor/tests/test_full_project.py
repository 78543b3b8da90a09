"""A full project is examined with each of the 18 defects alone, with pairs of different kinds, and with none.

All 153 pairs are tried by `python -m benchmarks.doctor`; those inside the model also by test_examination.py.
"""

from __future__ import annotations

import pytest
import torch

from specimens.full_project import Project, numbers

# Pairs that interact: in the same function, or one hides the symptom of the other.
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
# Checks that are skipped, because the project has no function for them.
SKIPPED = {
    "results do not depend on padding before the text",
    "step-by-step decoding gives the scores of teacher forcing",
}


@pytest.mark.parametrize(
    "defects",
    [(), *((number,) for number in range(1, 19)), *PAIRS],
    ids=lambda defects: "+".join(map(str, defects)) or "none",
)
@pytest.mark.slow
def test_exactly_the_planted_defects_of_a_project_are_named(defects: tuple[int, ...], training_seed: int) -> None:
    torch.manual_seed(training_seed)
    report = Project(*defects).examined()
    assert numbers(report) == set(defects), report
    assert {check for check, _ in report.skipped} == SKIPPED


@pytest.mark.parametrize("defect", ["unseeded-split", "vocabulary-from-test-set", "wrong-tokenizer/same-text"])
def test_defects_of_data_that_no_exhibit_shows_are_named(defect: str, training_seed: int) -> None:
    torch.manual_seed(training_seed)
    assert Project(defect).examined().names == [defect.partition("/")[0]]
