"""A fake of the package datasets, the package itself with a cache of its own, and rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROWS = [{"translation": {"de": f"Satz {number}", "en": f"sentence {number}"}} for number in range(5)]
PAIRS = [(f"Satz {number}", f"sentence {number}", number + 1) for number in range(5)]


class DatasetNotFoundError(FileNotFoundError):
    """Stand in for the error of the package."""


class FakeStream:
    """Stand in for a streamed split: iterable, without a length."""

    def __init__(self, rows: list[Any], described: dict[str, Any] | None = None) -> None:
        self.rows = rows
        self.info = SimpleNamespace(splits=described)
        self.read = 0

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            if isinstance(row, Exception):
                raise row
            self.read += 1
            yield row


class FakeDatasets(ModuleType):
    """Stand in for the parts of the package that `bitext.hub` uses."""

    def __init__(self, **known: dict[str, FakeStream] | Exception) -> None:
        super().__init__("datasets")
        self.known = known
        self.requested: list[str] = []
        self.exceptions = SimpleNamespace(DatasetNotFoundError=DatasetNotFoundError)

    def load_dataset(self, name: str, part: str | None = None, *, streaming: bool) -> Any:
        assert streaming
        self.requested.append(f"{name} {part}" if part else name)
        answer = self.known.get(self.requested[-1].replace("/", "_").replace(" ", "__"))
        if answer is None:
            raise DatasetNotFoundError(f"Dataset '{name}' doesn't exist on the Hub\nor cannot be accessed.")
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that lets `import datasets` import a fake with these data sets."""

    def install_fake(**known: Any) -> FakeDatasets:
        hub = FakeDatasets(**known)
        monkeypatch.setitem(sys.modules, "datasets", hub)
        return hub

    return install_fake


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return the package where it is installed, with an empty cache."""
    module = pytest.importorskip("datasets")
    monkeypatch.setattr(module.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    return module
