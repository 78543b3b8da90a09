"""A fault of a cache is named by the first attention that differs."""

from __future__ import annotations

import pytest

from specimens import cached_decoders
from specimens.sweep import covering
from transformer_doctor.texts import FINDING_TEXTS

DEFECTS = [(*planted, case) for planted, case in cached_decoders.DEFECTS.items()]
QUICK = covering(DEFECTS)


@pytest.mark.usefixtures("cache_alone")
@pytest.mark.parametrize(
    ("make", "defect", "case"),
    [pytest.param(*planted, marks=[pytest.mark.slow] * (planted not in QUICK)) for planted in DEFECTS],
)
def test_a_defect_of_a_cache_is_named_by_its_case(make: type[cached_decoders.Base], defect: str, case: str) -> None:
    report = cached_decoders.examined(make(defect))
    assert report.names == ["cache-differs"]
    texts = FINDING_TEXTS["en"]["cases" if case else "model"][case or "cache-differs"]
    assert report.findings[0].cause == texts["cause"]
    pieces_alone = report.findings[0].evidence.startswith("decoded with a cache several tokens at a time")
    assert pieces_alone == (report.findings[0].severity == "warning")
