"""`train` and `demo`: where a run is written, and the device."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Call, Record


@pytest.mark.parametrize(
    ("line", "output", "device"),
    [
        ("train demo-de-en", "runs/demo-de-en", "auto"),
        ("train demo-de-en -o mine --device cpu", "mine", "cpu"),
        ("train demo-de-en --output mine --set training.device=cuda --device cuda:1", "mine", "cuda:1"),
        ("demo -o mine --device cpu", "mine", "cpu"),
    ],
)
def test_the_options_set_the_device_and_the_run(
    line: str, output: str, device: str, call: Call, record: Record
) -> None:
    calls = record("manyheads.runs.train.train", "manyheads.runs.demo.train")
    call(*line.split(), "-q", code=1)
    (((config, out), _),) = calls
    assert (out, config.training.device) == (Path(output), device)
