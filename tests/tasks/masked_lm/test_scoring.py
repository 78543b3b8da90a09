"""A masked language model of plain text, and a classifier that is initialized with it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tests.runs.labelled import labelled_config, write_labelled, write_unlabelled
from tests.runs.parts import Interrupting, training_report
from tests.runs.test_train import assert_same_run
from tests.tolerances import approx
from tests.training.parts import CollectingListener

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.errors import DataError, RunError
from manyheads.inference.classifier import Classifier
from manyheads.runs.evaluate import evaluate
from manyheads.runs.train import train

MODEL: dict[str, Any] = {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 1, "dropout": 0.1}


def masked_config(root: Path, **sections: dict[str, Any]) -> Config:
    values: dict[str, Any] = {
        "task": "masked-lm",
        "data": {"root": str(root), "language": "en", "train": "plain.txt", "valid": 0.2, "max_length": 9},
        "tokenizer": {"kind": "bpe", "vocab_size": 60, "sampling": 0.1},
        "model": MODEL,
        "training": {
            "steps": 12, "batch_tokens": 200, "learning_rate": 0.01, "warmup_steps": 3, "precision": "fp32",
            "device": "cpu", "save_every": 4, "log_every": 3, "accumulation": 2,
        },
    }  # fmt: skip
    for name, section in sections.items():
        values[name] = values[name] | section
    return Config.model_validate(values)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_unlabelled(write_labelled(tmp_path_factory.mktemp("plain")), 80)


@pytest.fixture(scope="module")
def encoder(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "encoder"
    train(masked_config(text), out)
    return out


def test_the_loss_falls_below_that_of_guessing(text: Path, tmp_path: Path, training_seed: int) -> None:
    listener, config = CollectingListener(), masked_config(text)
    training = config.training.model_copy(update={"seed": training_seed})
    train(config.model_copy(update={"training": training}), tmp_path / "run", listener=listener)
    losses = [report.loss for report in listener.validations]
    assert losses[0] > losses[-1]
    assert losses[-1] < math.log(60)
    assert "fill-mask" in (tmp_path / "run" / "README.md").read_text(encoding="utf-8")


def test_texts_without_letters_are_not_scored(encoder: Path, tmp_path: Path) -> None:
    assert evaluate(encoder, split="valid").texts == 16
    (tmp_path / "blank.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(DataError, match="holds no text"):
        evaluate(encoder, source=tmp_path / "blank.txt")
    (tmp_path / "new.txt").write_text("a great film\n\nthe plot was dull\n", encoding="utf-8")
    other = evaluate(encoder, source=tmp_path / "new.txt")
    assert other.texts == 2
    assert other.to_json()["perplexity"] == pytest.approx(math.exp(other.loss))


@pytest.mark.parametrize("batch_tokens", [1, 50, 10_000])
def test_perplexity_does_not_depend_on_batching(
    encoder: Path, monkeypatch: pytest.MonkeyPatch, batch_tokens: int
) -> None:
    """Invariant L."""
    right = evaluate(encoder, split="valid")
    monkeypatch.setattr("manyheads.tasks.masked_lm.scoring._BATCH_TOKENS", batch_tokens)
    found = evaluate(encoder, split="valid")
    assert found.tokens == right.tokens
    assert found.loss == approx(right.loss)


def test_an_interrupted_training_ends_like_an_uninterrupted_training(
    text: Path, encoder: Path, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(masked_config(text), tmp_path / "run", listener=Interrupting(step=6))
    train(masked_config(text), tmp_path / "run")
    assert_same_run(tmp_path / "run", encoder)


def test_a_classifier_is_initialized_with_the_tokenizer_and_weights_of_an_encoder(
    text: Path, encoder: Path, tmp_path: Path
) -> None:
    model = MODEL | {"init_from": str(encoder)}
    training = {"steps": 1, "learning_rate": 1e-30, "warmup_steps": 0}
    report = training_report(
        labelled_config(text, model=model, training=training), tmp_path / "run", f"from {encoder}"
    )
    assert "new: pooler.weight, pooler.bias, output.weight, output.bias" in report
    assert "not used: output.bias, transform.bias, transform.weight, transform_norm.bias" in report
    found, initial = (load_file(run / "model.safetensors") for run in (tmp_path / "run", encoder))
    taken = [name for name in found if not name.startswith(("pooler.", "output."))]
    assert len(taken) > 5
    for name in taken:
        assert bool((found[name] == initial[name]).all()), name
    tokenizers = [RunDirectory(run).tokenizers(RunDirectory(run).config()) for run in (tmp_path / "run", encoder)]
    assert tokenizers[0].source.sha256 == tokenizers[1].source.sha256
    assert Classifier.load(tmp_path / "run").classify(["a great film"])[0].label in ("0", "1")


def test_a_classifier_can_be_fine_tuned_with_lora(text: Path, encoder: Path, tmp_path: Path) -> None:
    """The published weights include the LoRA updates."""
    training = {"lora_rank": 2, "optimizer": "adamw", "layer_decay": 0.8, "learning_rate": 0.01}
    config = labelled_config(text, model=MODEL | {"init_from": str(encoder)}, training=training)
    train(config, tmp_path / "run")
    found, initial = (load_file(run / "model.safetensors") for run in (tmp_path / "run", encoder))
    shared = {name for name in found if not name.startswith(("pooler.", "output."))}
    moved = {name for name in shared if not bool((found[name] == initial[name]).all())}
    assert {name.partition(".")[0] for name in moved} == {"encoder_layers", "encoder_norm"}
    assert all(found[name].ndim == 2 for name in moved if name.startswith("encoder_layers."))
    assert Classifier.load(tmp_path / "run").classify(["a great film"])[0].label in ("0", "1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"init_from": "/nowhere"}, r"/nowhere is not a directory"),
        ({"init_vocabulary": "extend"}, r'"extend" is for words and characters; .* has tokenizer.kind = "bpe"'),
    ],
)
def test_a_missing_encoder_or_an_unsupported_vocabulary_is_named(
    text: Path, encoder: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    model = MODEL | {"init_from": str(encoder)} | change
    with pytest.raises(RunError, match=message):
        train(labelled_config(text, model=model), tmp_path / "run")


def test_the_shape_of_the_encoder_overrides_the_configuration(text: Path, encoder: Path, tmp_path: Path) -> None:
    model = {"d_model": 24, "num_heads": 3, "num_encoder_layers": 2, "init_from": str(encoder)}
    config = labelled_config(text, model=model, tokenizer={"kind": "characters"}, training={"steps": 1})
    report = training_report(config, tmp_path / "run", f"as in {encoder}")
    assert report.endswith("d_model = 16, num_heads = 2, num_encoder_layers = 1, tokenizer.kind = bpe")
    assert RunDirectory(tmp_path / "run").config().model.d_model == 16
