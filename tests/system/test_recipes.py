"""Every recipe trains some steps on a small text of its languages."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.interop.pretrained import write_folder

from manyheads.config.load import load_config, recipe_paths
from manyheads.reports import SilentListener, ValidationReport
from manyheads.runs.train import train

WORDS = [
    "der", "die", "ein", "Hund", "Katze", "Haus", "rot", "blau", "läuft", "sieht",
    "man", "dog", "runs", "sees", "red", "house",
    "나는", "개", "집", "빨간", "본다",
]  # fmt: skip
RECIPES = recipe_paths()


class ValidationCollector(SilentListener):
    """A listener that collects validations."""

    def __init__(self) -> None:
        self.validations: list[ValidationReport] = []

    def validation(self, report: ValidationReport) -> None:
        self.validations.append(report)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 200 pairs under the names of every split and language that recipes use."""
    folder = tmp_path_factory.mktemp("text")
    generator = random.Random(1)
    for split, count in (("train", 200), ("valid", 30), ("val", 30), ("dev", 30), ("validation", 30)):
        lines = [" ".join(generator.choices(WORDS, k=generator.randint(2, 9))) for _ in range(count)]
        for language in ("de", "en", "ko"):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        examples = "".join(f"{number % 2}\t{line}\n" for number, line in enumerate(lines))
        (folder / f"{split}.tsv").write_text(examples, encoding="utf-8")
    (folder / "input.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", [name for name in RECIPES if not name.startswith("demo-")])
def test_a_recipe_trains_validates_and_saves(name: str, text: Path, tmp_path: Path) -> None:
    plain = load_config(RECIPES[name])
    overrides = [f"data.root={text.as_posix()}", "data.dataset=none", "data.test=none", "training.save_every=2"]
    overrides += ["training.steps=2", "training.epochs=none", "training.max_minutes=none", "data.limit=none"]
    overrides += ["training.valid_sentences=4"]
    if plain.tokenizer.kind in ("bpe", "unigram"):
        overrides.append("tokenizer.vocab_size=300")
    if plain.model.init_from is not None:
        write_folder(tmp_path / "encoder", "bert")
        overrides.append(f"model.init_from={(tmp_path / 'encoder').as_posix()}")
    else:
        overrides += ["model.d_model=32", "model.d_ff=64"]
        overrides += ["model.num_encoder_layers=1"] if plain.task != "language-modeling" else []
        overrides += ["model.num_decoder_layers=1"] if plain.task in ("translation", "language-modeling") else []
    if plain.training.batch_sentences is not None:
        overrides.append("training.batch_sentences=16")
    config = load_config(RECIPES[name], overrides)
    listener = ValidationCollector()
    summary = train(config, tmp_path / "run", listener=listener)
    assert summary.step == 2
    assert len(listener.validations) == 1
    assert (tmp_path / "run" / "model.safetensors").is_file()


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_begins_with_its_description_and_its_measured_result(name: str) -> None:
    lines = RECIPES[name].read_text(encoding="utf-8").split("\n")
    comment = lines[: next(index for index, line in enumerate(lines) if line.startswith("task = "))]
    assert all(line.startswith("# ") for line in comment)
    assert any(line.startswith("# Measured: ") for line in comment)
