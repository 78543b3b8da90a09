"""What a cache lacks is named by the first attention that differs."""

from __future__ import annotations

import pytest
import torch

from specimens import cached_decoders
from transformer_doctor.texts import FINDING_TEXTS


@pytest.mark.parametrize(("planted", "case"), cached_decoders.DEFECTS.items())
def test_a_defect_of_a_cache_is_named_by_its_case(
    planted: tuple[type[cached_decoders.Base], str], case: str
) -> None:
    make, defect = planted
    torch.manual_seed(0)
    report = cached_decoders.examined(make(defect))
    assert report.names == ["cache-differs"]
    texts = FINDING_TEXTS["en"]["cases" if case else "model"][case or "cache-differs"]
    assert report.findings[0].cause == texts["cause"]
    assert ("several tokens at a time" in report.findings[0].evidence) == (report.findings[0].severity == "warning")
