"""The tasks by name: what a configuration and the readers of text need to know of each, without importing its code.

A new task is a folder of its own in `tasks/`, and an entry here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

Reads = Literal["pairs", "labelled", "documents", "stream"]
Architecture = Literal["encoder-decoder", "classifier", "masked-encoder", "decoder"]


@dataclass(frozen=True)
class TaskSpec:
    """Properties of a task that need no import of its modules.

    Attributes:
        module: module whose `TASK` is the `training.task.Task`; it is imported when it is first used.
        model_class: module and name of the class that opens a run and applies its model to raw text.
        architecture: model of the task.
        reads: text that the task learns from: sentence pairs, texts with a label each, documents (a line each), or
            one stream of text, cut into blocks.
        metrics: allowed values of `training.metric`.
        command: command and JavaScript function that use a trained model; "" if others start from it.
        page: views of the page that show such a model; "" for none.
    """

    module: str
    model_class: str
    architecture: Architecture
    reads: Reads
    metrics: tuple[str, ...] = ("loss",)
    command: str = ""
    page: str = ""

    @property
    def reads_pairs(self) -> bool:
        """Whether the text is sentence pairs in two languages."""
        return self.reads == "pairs"

    @property
    def reads_labels(self) -> bool:
        """Whether each text has a label."""
        return self.reads == "labelled"

    @property
    def reads_stream(self) -> bool:
        """Whether the text is one stream, in which white space counts."""
        return self.reads == "stream"

    @property
    def decodes(self) -> bool:
        """Whether the model writes a target for a source."""
        return self.architecture == "encoder-decoder"

    @property
    def languages(self) -> tuple[str, ...]:
        """The settings of `[data]` that name the languages."""
        return ("source", "target") if self.reads_pairs else ("language",)


TASKS: dict[str, TaskSpec] = {
    "translation": TaskSpec(
        module="manyheads.tasks.translation.task",
        model_class="manyheads.inference.translation.translator:Translator",
        architecture="encoder-decoder",
        reads="pairs",
        metrics=("loss", "bleu", "chrf"),
        command="translate",
        page="translation",
    ),
    "classification": TaskSpec(
        module="manyheads.tasks.classification.task",
        model_class="manyheads.inference.classifier:Classifier",
        architecture="classifier",
        reads="labelled",
        metrics=("loss", "accuracy", "macro_f1"),
        command="classify",
        page="classification",
    ),
    "language-modeling": TaskSpec(
        module="manyheads.tasks.language_modeling.task",
        model_class="manyheads.inference.generator:Generator",
        architecture="decoder",
        reads="stream",
        command="generate",
        page="language-modeling",
    ),
    "masked-lm": TaskSpec(
        module="manyheads.tasks.masked_lm.task",
        model_class="manyheads.tasks.masked_lm.encoder:Encoder",
        architecture="masked-encoder",
        reads="documents",
    ),
}


def model_class_of(task: str) -> type[Any]:
    """Return the class that opens a run of a task and applies its model to raw text; its module is imported."""
    module, _, name = TASKS[task].model_class.partition(":")
    found: type[Any] = vars(import_module(module))[name]
    return found
