"""Every task that a configuration can name is one object."""

from __future__ import annotations

import pytest

from manyheads.config.schema import TASKS
from manyheads.training.registry import task_named


@pytest.mark.parametrize("name", TASKS)
def test_the_module_of_a_task_holds_the_task_of_that_name(name: str) -> None:
    assert task_named(name).name == name
    assert task_named(name).spec is TASKS[name]
    assert task_named(name) is task_named(name)
