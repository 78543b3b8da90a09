from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.serving.browser import open_browser
from tests.serving.process import (
    Server,
    endless_translator,
    serving,
    train_classifier,
    train_language_model,
    train_once,
    train_translator,
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture(scope="session")
def translator_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_once(tmp_path_factory, train_translator)


@pytest.fixture(scope="session")
def endless_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return endless_translator(tmp_path_factory.mktemp("endless"))


@pytest.fixture(scope="session")
def server(translator_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server of de-en, a classifier and a language model."""
    others = (train_once(tmp_path_factory, train) for train in (train_classifier, train_language_model))
    with serving(
        "--timeout", 120, translator_run, *others, environment={"MANYHEADS_METRICS_TOKEN": "see-all"}
    ) as running:
        yield running
        assert running.end() == 0
        assert "fault" not in running.text
