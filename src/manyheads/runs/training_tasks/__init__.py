"""The tasks that can be trained: translation, classification, language modelling, masked language modelling."""

from __future__ import annotations

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.runs.corpus import Corpus
from manyheads.runs.prepare import prepare
from manyheads.runs.training_tasks.classification import prepare_classification
from manyheads.runs.training_tasks.interface import TrainingTask
from manyheads.runs.training_tasks.language_modeling import prepare_language_model
from manyheads.runs.training_tasks.masked import prepare_masked
from manyheads.runs.training_tasks.translation import TranslationTask
from manyheads.training.log import Listener

__all__ = ["TrainingTask", "prepare_task"]


def prepare_task(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare vocabularies and token ids of a run; stored ones are reused."""
    match config.task:
        case "translation":
            return TranslationTask(config, corpus, *prepare(config, run, corpus, listener))
        case "classification":
            return prepare_classification(config, run, corpus, listener)
        case "language-modeling":
            return prepare_language_model(config, run, corpus, listener)
        case "masked-lm":
            return prepare_masked(config, run, corpus, listener)
