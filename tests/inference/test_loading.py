"""A model of a task is loaded from its run; a run of another task is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.inference.translation.test_translator import make_translator

from manyheads.config.load import config_to_json, parse_config
from manyheads.config.schema import TASKS
from manyheads.errors import RunError
from manyheads.inference.loading import evaluating
from manyheads.training.registry import task_named


@pytest.mark.parametrize(
    ("task", "other", "command"),
    [
        ("translation", "masked-lm", "manyheads translate RUN"),
        ("classification", "translation", "manyheads classify RUN"),
        ("language-modeling", "translation", "manyheads generate RUN"),
        ("masked-lm", "classification", "manyheads train CONFIG --set model.init_from=RUN"),
    ],
)
def test_a_run_of_another_task_is_refused_with_the_command_that_uses_it(
    task: str, other: str, command: str, tmp_path: Path
) -> None:
    data = dict.fromkeys(TASKS[task].languages, "de")
    (tmp_path / "config.json").write_text(config_to_json(parse_config({"task": task, "data": data}, origin="test")))
    message = f'trained for task = "{task}", not for "{other}". Use: {command.replace("RUN", str(tmp_path))}'
    with pytest.raises(RunError, match=re.escape(message)):
        task_named(other).load(tmp_path, "cpu")


@pytest.mark.parametrize("was_training", [True, False])
def test_a_model_has_its_former_mode_after_evaluation_even_after_an_error(was_training: bool) -> None:
    model = make_translator().model.train(was_training)
    with evaluating(model):
        assert not model.training
    assert model.training is was_training
    with pytest.raises(KeyError), evaluating(model):
        raise KeyError
    assert model.training is was_training
