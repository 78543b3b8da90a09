"""The interface of a task: everything that differs between translation, classification and language modelling.

A new task is a subclass of `Task` in a folder of its own, listed in `registry.TASKS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.store import TokenStore, TokenStream
from manyheads.model.transformer import Transformer
from manyheads.tasks.corpus import Corpus
from manyheads.text.tokenizer import TokenizerPair, train_tokenizer
from manyheads.training.batches import BatchSource
from manyheads.training.distributed import World
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.objective import Objective


class Task(ABC):
    """What a model learns: how it is built, trained, loaded, scored and described.

    Attributes:
        name: value of `task` in a configuration.
        head: beginnings of the names of the weights that belong to the task alone; they may be new in a training
            that starts from another model.
        token_rows: the weights that have a row for each token, with the side of these tokens.
    """

    name: ClassVar[str]
    head: ClassVar[tuple[str, ...]] = ()
    token_rows: ClassVar[Mapping[str, str]]

    @abstractmethod
    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """Prepare tokenizers and token ids of a run; stored ones are reused.

        Raises:
            DataError: the text cannot be used for this task.
        """

    @abstractmethod
    def build_model(self, config: Config, tokenizers: TokenizerPair, classes: Sequence[str]) -> Transformer:
        """Build a new model on the CPU; `classes` are those of a classifier."""

    def learn_tokenizers(self, config: Config, sources: Sequence[str], targets: Sequence[str]) -> TokenizerPair:
        """Learn the tokenizers of both sides: one for both, unless a task has two sides."""
        tokenizer = train_tokenizer(config.tokenizer, sources, config.data.language)
        return TokenizerPair(tokenizer, tokenizer, joint=True)

    def describe_vocabulary(self, tokenizers: TokenizerPair, classes: Sequence[str]) -> str:
        """Return the sizes of the vocabulary, for a message."""
        return f"{tokenizers.target.size:,}"


@dataclass(frozen=True)
class TrainingTask:
    """A task to train, with text, tokenizers and token ids.

    Attributes:
        task: the task.
        config: configuration of the run.
        corpus: text of the run.
        tokenizers: tokenizers of both sides; twice the same for tasks with one text.
        store: token ids of the training text; a `TokenStream` for language modelling.
        objective: returns a model with its loss.
        updates: returns the batches of this process.
        validation: returns the validation of a model, a function of the step. Its arguments are the model, the
            processes that share it, and a `Watch`.
        too_long: number of training examples left out because they have too many tokens.
        classes: classes of a classifier, in the order of its outputs.
        documents: returns further JSON documents of the run directory, by file name.
    """

    task: Task
    config: Config
    corpus: Corpus
    tokenizers: TokenizerPair
    store: TokenStore | TokenStream
    objective: Callable[[Any], Objective]
    updates: Callable[[World], BatchSource]
    validation: Callable[..., Callable[[int], ValidationReport]]
    too_long: int = 0
    classes: tuple[str, ...] = ()
    documents: Callable[[], Mapping[str, Mapping[str, Any]]] = dict

    def model(self) -> Transformer:
        """Build a new model on the CPU."""
        return self.task.build_model(self.config, self.tokenizers, self.classes)

    @property
    def vocabulary(self) -> str:
        """Description of the vocabulary sizes, for a message."""
        return self.task.describe_vocabulary(self.tokenizers, self.classes)

    def begin(self, run: RunDirectory, environment: Mapping[str, Any]) -> None:
        """Write the files that a run directory has before the first step."""
        run.begin(self.config, self.tokenizers, environment, self.documents())
