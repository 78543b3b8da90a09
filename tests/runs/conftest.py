from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.parts import make_config, write_corpus

from manyheads.runs.train import train


@pytest.fixture(scope="session")
def averaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a run with the checkpoints 4, 8 and 12, which tests only read."""
    folder = tmp_path_factory.mktemp("averaged")
    config = make_config(write_corpus(folder / "corpus"), training={"average_checkpoints": 3})
    train(config, folder / "run")
    return folder / "run"
