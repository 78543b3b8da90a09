"""The fake clock of tests that measure time."""

from __future__ import annotations

import pytest
from tests.training.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)
