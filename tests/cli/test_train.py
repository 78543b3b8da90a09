"""`train` and `demo`: where a run is written, and the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from manyheads.cli.main import run
from manyheads.errors import ManyheadsError


@pytest.mark.parametrize(
    ("options", "output", "device"),
    [
        ([], "runs/demo-de-en", "auto"),
        (["-o", "mine", "--device", "cpu"], "mine", "cpu"),
        (["--output", "mine", "--set", "training.device=cuda", "--device", "cuda:1"], "mine", "cuda:1"),
    ],
)
def test_train_sets_the_device_and_the_run(
    options: list[str], output: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[Any, Path]] = []

    def train(config: Any, out: Path, **_: object) -> None:
        calls.append((config, out))
        raise ManyheadsError("enough")

    monkeypatch.setattr("manyheads.runs.train.train", train)
    assert run(["train", "demo-de-en", "-q", *options]) == 1
    ((config, out),) = calls
    assert (out, config.training.device) == (Path(output), device)


def test_demo_trains_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, Path]] = []

    def train(config: Any, out: Path, **_: object) -> None:
        calls.append((config, out))
        raise ManyheadsError("enough")

    monkeypatch.setattr("manyheads.runs.demo.train", train)
    assert run(["demo", "-q", "--device", "cpu", "-o", "mine"]) == 1
    ((config, out),) = calls
    assert (out, config.training.device) == (Path("mine"), "cpu")
