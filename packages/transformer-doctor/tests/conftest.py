"""Fixtures of the tests of the package."""

from __future__ import annotations

import os
from collections import defaultdict
from functools import partial
from typing import Any

import pytest
import torch

from transformer_doctor import Report, examination
from transformer_doctor.checks.stepping import STEPPING
from transformer_doctor.preparation import Preparation
from transformer_doctor.report import attempt


@pytest.fixture(scope="session", params=range(1, 1 + int(os.environ.get("MANYHEADS_TEST_SEEDS", "1"))))
def training_seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of a test that trains a model and judges what it learned: 1, or 1 to MANYHEADS_TEST_SEEDS."""
    return int(request.param)


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """Draw the same random numbers in each test, whichever tests run before it."""
    torch.manual_seed(3)


@pytest.fixture
def few_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make 2 updates on random targets instead of 40, in tests that do not judge the loss they lead to."""
    for name in ("trial.RANDOM_UPDATES", "learning.RANDOM_UPDATES", "learning._NUM_LAST_UPDATES"):
        monkeypatch.setattr(f"transformer_doctor.checks.{name}", 2)


@pytest.fixture
def training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask nothing about the outputs, in tests of training steps whose model is sound."""
    monkeypatch.setattr("transformer_doctor.examination._check_outputs", lambda *args, **options: Report())


@pytest.fixture
def rows_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask nothing about the dependence of rows, in tests of the labels, the loss and the updates of a step."""
    monkeypatch.setattr("transformer_doctor.checks.learning.row_findings", lambda *_, **options: [])


@pytest.fixture
def cache_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask about decoding with a cache alone, in tests of models whose other outputs are sound."""

    def check(prepared: Preparation, *_: Any, **options: Any) -> Report:
        ask = partial(examination._check_cache, prepared.adapter, prepared.samples, defaultdict(str))
        return attempt([STEPPING], ask)

    monkeypatch.setattr(examination, "_check_outputs", check)


@pytest.fixture
def one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask nothing about longer texts, in tests of defects that short ones show."""
    monkeypatch.setattr(examination, "_observe_lengths", lambda *_: (Report(), None))
    for name in ("distance_report", "examine_lengths"):
        monkeypatch.setattr(examination, name, lambda *_: Report())


@pytest.fixture(autouse=True)
def time_for_long_texts(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Give the questions about long texts a moment, and in tests of their answers as much time as they need."""
    judges = request.node.path.stem in ("test_lengths", "test_distances", "test_positions")
    monkeypatch.setattr("transformer_doctor.checks.lengths._SECONDS", 60.0 if judges else 0.05)
