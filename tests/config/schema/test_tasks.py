"""A task is known by its name; a configuration learns what it needs of it without importing its code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from manyheads.config.load import parse_config
from manyheads.config.schema import TASKS
from manyheads.errors import ConfigError

LANGUAGES = {"source": "de", "target": "en"}


@pytest.mark.parametrize("task", ["translatoin", "", 3])
def test_an_unknown_task_is_refused_with_all_names_and_the_nearest(task: object) -> None:
    with pytest.raises(ConfigError) as error:
        parse_config({"task": task, "data": LANGUAGES}, origin="test")
    names = ", ".join(f'"{name}"' for name in TASKS)
    assert names in str(error.value).replace(" or ", ", ")
    assert ('did you mean "translation"?' in str(error.value)) == (task == "translatoin")


def test_a_configuration_is_checked_without_the_code_of_its_task() -> None:
    config = "parse_config({'task': 'masked-lm', 'data': {'language': 'de'}}, origin='test')"
    code = f"import sys; from manyheads.config.load import parse_config; {config}; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"torch", "numpy", "manyheads.tasks"} & set(modules.split())
