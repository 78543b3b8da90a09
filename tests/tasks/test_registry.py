"""Every task that a configuration can name is one object."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from tests.runs.parts import make_config

from manyheads.config.schema import Task as Name
from manyheads.tasks.registry import TASKS, task_of


def test_every_name_of_a_configuration_has_a_task_of_that_name() -> None:
    assert {name: task.name for name, task in TASKS.items()} == {name: name for name in get_args(Name)}


def test_a_configuration_leads_to_its_task(tmp_path: Path) -> None:
    assert task_of(make_config(tmp_path)) is TASKS["translation"]
