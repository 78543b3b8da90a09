"""A finding that covers several cases gives the cause and the cure of the observed case."""

from __future__ import annotations

import pytest

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.cases import in_case
from transformer_doctor.checks.masks import _PHRASES
from transformer_doctor.texts import FINDING_TEXTS


@pytest.mark.parametrize("case", FINDING_TEXTS["en"]["cases"])
def test_a_case_replaces_cause_and_cure_in_both_languages_and_keeps_the_title(case: str) -> None:
    usual = model_finding("mask-fill", "seen")
    finding = in_case(usual, case)
    assert (finding.name, finding.evidence) == ("mask-fill", "seen")
    assert finding.cause == FINDING_TEXTS["en"]["cases"][case]["cause"]
    assert finding.translate("ko").cure == FINDING_TEXTS["ko"]["cases"][case]["cure"]
    assert finding.texts["ko"].title == usual.texts["ko"].title


def test_every_fault_of_a_mask_has_a_case_unless_the_finding_itself_fits() -> None:
    cases = {name.removeprefix("mask-") for name in FINDING_TEXTS["en"]["cases"] if name.startswith("mask-")}
    assert set(_PHRASES) - cases == {"absent", "queries", "fill"}
