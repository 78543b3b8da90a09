from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving.process import (
    Server,
    endless_translator,
    serving,
    train_classifier,
    train_language_model,
    train_translator,
)


@pytest.fixture(scope="session")
def translator_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_translator(tmp_path_factory.mktemp("translator"))


@pytest.fixture(scope="session")
def endless_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return endless_translator(tmp_path_factory.mktemp("endless"))


@pytest.fixture(scope="session")
def server(translator_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server of de-en, a classifier and a language model."""
    folder = tmp_path_factory.mktemp("others")
    runs = (translator_run, train_classifier(folder), train_language_model(folder))
    with serving(*runs, environment={"MANYHEADS_METRICS_TOKEN": "see-all"}) as running:
        yield running
        assert running.end() == 0
        assert "fault" not in running.text
