"""The tasks by name: the only place where the name of a task becomes an object."""

from __future__ import annotations

from importlib import import_module

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import TASKS, Config
from manyheads.data.training_text import Corpus
from manyheads.reports import Listener
from manyheads.training.task import AnyTask, TrainingTask


def task_named(name: str) -> AnyTask:
    """Return the task of a name in `TASKS`; its module is imported."""
    task: AnyTask = import_module(TASKS[name].module).TASK
    return task


def task_of(config: Config) -> AnyTask:
    """Return the task of a configuration."""
    return task_named(config.task)


def prepare_task(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare tokenizers and token ids of a run; stored ones are reused."""
    return task_of(config).prepare(config, run, corpus, listener)
