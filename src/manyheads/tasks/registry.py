"""The tasks by name: the only place where the name of a task becomes an object."""

from __future__ import annotations

from typing import Any

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.tasks.classification.task import ClassificationTask
from manyheads.tasks.corpus import Corpus
from manyheads.tasks.language_modeling.task import LanguageModelingTask
from manyheads.tasks.masked_lm.task import MaskedTask
from manyheads.tasks.task import Task, TrainingTask
from manyheads.tasks.translation.task import TranslationTask
from manyheads.training.log import Listener

TASKS: dict[str, Task[Any]] = {
    task.name: task for task in (TranslationTask(), ClassificationTask(), LanguageModelingTask(), MaskedTask())
}


def task_of(config: Config) -> Task[Any]:
    """Return the task of a configuration."""
    return TASKS[config.task]


def prepare_task(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare tokenizers and token ids of a run; stored ones are reused."""
    return task_of(config).prepare(config, run, corpus, listener)
