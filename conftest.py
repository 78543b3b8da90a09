"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

# A busy machine takes longer for an example.
settings.register_profile("untimed", deadline=None, max_examples=50)
settings.load_profile("untimed")

# As the program does, before any test imports torch.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
# With pytest-xdist (pytest -n), each process has a core of its own.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# No test cuts the power: a tiny training would wait for the disk a third of its time.
os.fsync = lambda descriptor: None  # type: ignore[assignment, misc]
# Programs that the tests start inherit an ignored Ctrl-C, as of a command that a script runs in the background.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The number of the rounding mode (tests/rounding.py), which moves the last bits of results; 0: off.
ROUNDING_SEED = int(os.environ.get("MANYHEADS_TEST_ROUNDING") or 0)
if ROUNDING_SEED:
    from tests import rounding

    rounding.install()


@pytest.fixture(scope="session", params=range(1, 1 + int(os.environ.get("MANYHEADS_TEST_SEEDS", "1"))))
def training_seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of a test that trains a model and judges what it learned: 1, or 1 to MANYHEADS_TEST_SEEDS."""
    return int(request.param)


@pytest.fixture
def short_examinations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the doctor a moment for long texts and few updates on random targets, in tests that judge neither."""
    monkeypatch.setattr("transformer_doctor.checks.lengths._SECONDS", 0.05)
    for module in ("trial", "learning"):
        monkeypatch.setattr(f"transformer_doctor.checks.{module}.RANDOM_UPDATES", 5)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use `training_seed`, so that `-m learning` runs them alone."""
    for item in items:
        if "training_seed" in getattr(item, "fixturenames", ()):
            item.add_marker("learning")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Take the modules and the thousands of tests out of every garbage collection, also while they are imported."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test and its fixtures in the rounding mode, where MANYHEADS_TEST_ROUNDING asks for it."""
    if not ROUNDING_SEED or item.get_closest_marker("exact_bits"):
        return (yield)
    with rounding.rounding(ROUNDING_SEED):
        return (yield)
