"""What training tells is written down whole, and passed on."""

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
    """TensorBoard's own reader of a folder of event files."""
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    accumulator = reading.EventAccumulator(str(folder))
    accumulator.Reload()
    return accumulator


def test_tensorboard_reads_what_the_other_listener_heard(tmp_path: Path) -> None:
    config = make_config(write_corpus(tmp_path / "corpus"), training={"tensorboard": True})
    heard = CollectingListener()
    train(config, tmp_path / "run", listener=heard)
    found = read_tensorboard(tmp_path / "run" / "tensorboard")
    losses = [(event.step, event.value) for event in found.Scalars("train/loss")]
    assert losses == [(report.step, pytest.approx(report.loss)) for report in heard.steps]
    scores = [(event.step, event.value) for event in found.Scalars("valid/bleu")]
    assert scores == [(report.step, pytest.approx(report.scores["bleu"])) for report in heard.validations]
    (text,) = {event.tensor_proto.string_val[0].decode() for event in found.Tensors("sample/text_summary")[-1:]}
    assert text == "\n\n".join(heard.validations[-1].sample or ())


def test_tensorboard_that_is_not_installed_is_said_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    config = make_config(write_corpus(tmp_path / "corpus"), training={"tensorboard": True})
    with pytest.raises(MissingExtraError, match=r"manyheads\[tensorboard\]"):
        train(config, tmp_path / "run", listener=CollectingListener())
