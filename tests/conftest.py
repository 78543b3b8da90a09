"""What holds for all tests."""

from __future__ import annotations

import os

import pytest

# As the program itself does (`manyheads.cli.main`): on a busy machine small models are many times faster like this.
# It is read when torch is imported, so it stands before any test.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
# Side by side (pytest -n), each process has a core of its own.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", params=range(1, 1 + int(os.environ.get("MANYHEADS_TEST_SEEDS", "1"))))
def training_seed(request: pytest.FixtureRequest) -> int:
    """The seed of a test that trains a model and judges what it learned: 1, or 1 to MANYHEADS_TEST_SEEDS."""
    return int(request.param)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "learning: trains a model and judges what it learned; uses training_seed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use `training_seed`, so that `-m learning` runs them alone."""
    for item in items:
        if "training_seed" in getattr(item, "fixturenames", ()):
            item.add_marker("learning")
