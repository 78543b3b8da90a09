"""A trained translator gets its model of the confidence from validation text."""

from __future__ import annotations

from pathlib import Path

from tests.runs.parts import SENTENCES, make_config, write_split

from manyheads.inference.translation.translator import Translator
from manyheads.runs.train import train


def test_a_run_with_enough_validation_text_gets_its_model_of_the_confidence(tmp_path: Path) -> None:
    """The same command makes it for a finished run of an older version."""
    write_split(tmp_path, "train", SENTENCES[:24])
    write_split(tmp_path, "valid", SENTENCES[24:])
    config = make_config(tmp_path, data={"test": None}, training={"valid_sentences": 30})
    assert len(SENTENCES[24:]) >= 20
    train(config, tmp_path / "run")
    made = Translator.load(tmp_path / "run", device="cpu").confidence
    assert made is not None
    (tmp_path / "run" / "confidence.json").unlink()
    train(config, tmp_path / "run")
    assert Translator.load(tmp_path / "run", device="cpu").confidence == made
    few = make_config(tmp_path, data={"test": None}, training={"valid_sentences": 19})
    train(few, tmp_path / "few")
    assert not (tmp_path / "few" / "confidence.json").exists()
