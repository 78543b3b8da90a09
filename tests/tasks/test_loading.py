"""A model of a task is loaded from its run; a run of another task is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tasks.translation.test_translator import make_translator, save_run

from manyheads.errors import RunError
from manyheads.tasks.classification.classifier import Classifier
from manyheads.tasks.language_modeling.generator import Generator
from manyheads.tasks.loading import LoadableModel, evaluating
from manyheads.tasks.masked_lm.encoder import Encoder


@pytest.mark.parametrize("kind", [Classifier, Encoder, Generator])
def test_the_run_of_a_translator_is_refused_by_every_other_task(kind: type[LoadableModel], tmp_path: Path) -> None:
    run = save_run(make_translator(), tmp_path / "run")
    for load in (kind.load, kind.from_pretrained):
        with pytest.raises(RunError, match=f'for task = "translation", not for "{kind.task}"'):
            load(str(run), device="cpu")


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run of manyheads"):
        Classifier.load(tmp_path, device="cpu")


@pytest.mark.parametrize("was_training", [True, False])
def test_a_model_has_its_former_mode_after_evaluation_even_after_an_error(was_training: bool) -> None:
    model = make_translator().model.train(was_training)
    with evaluating(model):
        assert not model.training
    assert model.training is was_training
    with pytest.raises(KeyError), evaluating(model):
        raise KeyError
    assert model.training is was_training
