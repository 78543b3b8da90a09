"""The task is the object by which the verbs build, train and describe its models."""

from __future__ import annotations

from pathlib import Path

from tests.runs.parts import make_config
from tests.tasks.parts import WORDS, assert_names_its_weights


def test_the_task_names_the_weights_of_its_model(tmp_path: Path) -> None:
    assert_names_its_weights(make_config(tmp_path, tokenizer=WORDS, model={"tied_embeddings": "none"}))
