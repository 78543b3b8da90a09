from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.parts import make_config, train_well, write_corpus

from manyheads.runs.train import train


@pytest.fixture(scope="session")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of two updates, which tests only read."""
    folder = tmp_path_factory.mktemp("untrained")
    train(make_config(write_corpus(folder / "text"), training={"steps": 2, "save_every": 2}), folder / "run")
    return folder / "run"


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory, training_seed: int) -> Path:
    """Return a run that translates its world well, which tests only read."""
    return train_well(tmp_path_factory.mktemp("learned"), training_seed)
