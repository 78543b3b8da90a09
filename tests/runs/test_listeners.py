"""Reports of training are recorded completely, and passed on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.runs.parts import make_config, write_corpus
from tests.training.parts import CollectingListener

from manyheads.errors import MissingExtraError
from manyheads.runs.train import train


def read_tensorboard(folder: Path) -> Any:
    """Return TensorBoard's own reader of a folder of event files."""
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    accumulator = reading.EventAccumulator(str(folder))
    accumulator.Reload()
    return accumulator


def test_tensorboard_holds_the_reports_of_the_other_listener(tmp_path: Path) -> None:
    config = make_config(write_corpus(tmp_path / "corpus"), training={"tensorboard": True})
    listener = CollectingListener()
    train(config, tmp_path / "run", listener=listener)
    found = read_tensorboard(tmp_path / "run" / "tensorboard")
    losses = [(event.step, event.value) for event in found.Scalars("train/loss")]
    assert losses == [(report.step, pytest.approx(report.loss)) for report in listener.steps]
    scores = [(event.step, event.value) for event in found.Scalars("valid/bleu")]
    assert scores == [(report.step, pytest.approx(report.scores["bleu"])) for report in listener.validations]
    (text,) = {event.tensor_proto.string_val[0].decode() for event in found.Tensors("sample/text_summary")[-1:]}
    assert text == "\n\n".join(listener.validations[-1].sample or ())


def test_a_missing_tensorboard_package_is_named_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    config = make_config(write_corpus(tmp_path / "corpus"), training={"tensorboard": True})
    with pytest.raises(MissingExtraError, match=r"manyheads\[tensorboard\]"):
        train(config, tmp_path / "run")
