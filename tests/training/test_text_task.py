"""Tasks of text alone are scored on it in one way: in validation, in an evaluation, and for a card."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runs.labelled import write_unlabelled
from tests.runs.language import make_language_config, write_play
from tests.runs.parts import metrics
from tests.tasks.masked_lm.test_scoring import masked_config
from tests.tolerances import approx

from manyheads.checkpoint import RunDirectory
from manyheads.data.training_text import held_out
from manyheads.errors import DataError, UsageError
from manyheads.runs.compare import compare
from manyheads.runs.evaluate import card_line, evaluate
from manyheads.runs.train import train
from manyheads.training.registry import task_of


@pytest.fixture(scope="module", params=["language-modeling", "masked-lm"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_unlabelled(write_play(tmp_path_factory.mktemp("text")))
    config = make_language_config(folder) if request.param == "language-modeling" else masked_config(folder)
    train(config, folder / "run")
    return folder / "run"


def test_validation_evaluation_and_card_have_the_same_loss(run: Path) -> None:
    config = RunDirectory(run).config()
    logged = min(record["loss"] for record in metrics(run) if record["kind"] == "validation")
    found = evaluate(run, split="valid")
    assert found.loss == approx(logged)
    assert task_of(config).validation_loss(run, held_out(config, "valid")) == approx(logged)
    assert f"perplexity {found.perplexity:.3f}" in card_line(run)


def test_a_text_that_cannot_be_scored_is_refused_with_the_reason(run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(DataError, match="no lines"):
        evaluate(run, source=tmp_path / "empty.txt")
    with pytest.raises(UsageError, match="needs no reference"):
        evaluate(run, source=tmp_path / "empty.txt", reference=tmp_path / "empty.txt")
    with pytest.raises(UsageError, match="--split valid"):
        evaluate(run)
    with pytest.raises(UsageError, match="two translators or two classifiers"):
        compare(run, run)
