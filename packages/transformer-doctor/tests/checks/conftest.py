"""Fixtures of the tests of checks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from korean_evidence import expect_korean
from transformer_doctor.texts import SENTENCES_IN_KOREAN


@pytest.fixture(autouse=True)
def evidence_in_korean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Expect that the evidence of every finding has a Korean form."""
    yield from expect_korean(monkeypatch, SENTENCES_IN_KOREAN)
