"""The interface of a task: everything that differs between translation, classification and language modelling.

A new task is a folder of its own whose module `task` has a `TASK`, and an entry in `config.schema.tasks.TASKS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import TASKS, Config, TaskSpec
from manyheads.config.schema.tasks import model_class_of
from manyheads.data.store import TokenStore, TokenStream
from manyheads.data.training_text import Corpus
from manyheads.errors import UsageError
from manyheads.model.transformer import Transformer
from manyheads.reports import Listener, ValidationReport
from manyheads.tensors.models import build_model, load_model
from manyheads.text.tokenizer import Tokenizer, TokenizerPair
from manyheads.text.training import train_tokenizer
from manyheads.training.batches import BatchSource
from manyheads.training.distributed import World
from manyheads.training.objective import LossAndNll, Objective

if TYPE_CHECKING:
    from manyheads.evaluation import BootstrapResult
    from manyheads.training.scored_text import ScoredText


class Loaded(Protocol):
    """A trained model with what it needs to be applied to raw text."""

    @property
    def config(self) -> Config:
        """The configuration of its run."""

    @property
    def model(self) -> Any:
        """The model in PyTorch."""


class Scored(Protocol):
    """Scores of a run on a text."""

    @property
    def loss(self) -> float:
        """Loss in nats a token or a text, without label smoothing."""

    def to_json(self) -> dict[str, Any]:
        """Return the document of `evaluate --json`."""

    def lines(self) -> list[str]:
        """Return lines of text."""


SourcesAndReferences: TypeAlias = tuple[Sequence[str], Sequence[str]]


class Differences(NamedTuple):
    """The differences between the outputs of two models on a text.

    Attributes:
        results: paired bootstrap of each metric, the first model against the second.
        description: size of the text, and how its outputs were computed.
        empty: sentences on lines without text.
    """

    results: tuple[BootstrapResult, ...]
    description: str
    empty: tuple[str, ...] = ()


Model = TypeVar("Model", bound=Loaded)


class Task(ABC, Generic[Model]):
    """A task: how its models are built, trained, loaded, scored and described.

    Attributes:
        name: value of `task` in a configuration.
        head: beginnings of the names of the weights that belong to the task alone; they may be new in a training
            that starts from another model.
        token_rows: the weights that have a row for each token, with the side of these tokens.
        model_noun: noun of a model in the title of its card.
        pipeline: pipeline of the Hugging Face hub that uses such models.
        loss_decimals: number of decimals of the best validation score in a card.
        loss_unit: unit of a validation loss in a card.
        scores_outputs: whether an evaluation has outputs, line by line, which can be written and compared.
    """

    name: ClassVar[str]
    head: ClassVar[tuple[str, ...]] = ()
    token_rows: ClassVar[Mapping[str, str]]
    model_noun: ClassVar[str] = "Encoder"
    pipeline: ClassVar[str] = ""
    loss_decimals: ClassVar[int] = 3
    loss_unit: ClassVar[str] = ""
    scores_outputs: ClassVar[bool] = False

    @property
    def spec(self) -> TaskSpec:
        """Properties of the task that need no import of its modules."""
        return TASKS[self.name]

    @abstractmethod
    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """Prepare tokenizers and token ids of a run; stored ones are reused.

        Raises:
            DataError: the text cannot be used for this task.
        """

    def sample_sides(self, training: TrainingTask, most: int) -> Iterator[tuple[str, Tokenizer, Sequence[str]]]:
        """Yield name, tokenizer and at most `most` texts of each side of train and of the validation set."""
        yield "train", training.tokenizers.target, training.corpus.train.sides(most)[1]
        yield "valid", training.tokenizers.target, [pair.target for pair in training.corpus.valid[:most]]

    def count_tokens(self, training: TrainingTask) -> Iterator[tuple[str, Tokenizer, NDArray[np.int64]]]:
        """Yield the name, the tokenizer and the token frequencies in train (V,) of each vocabulary."""
        store, tokenizer = training.store, training.tokenizers.target
        ids = store.tokens if isinstance(store, TokenStream) else store.target.values
        yield "vocabulary", tokenizer, np.bincount(ids, minlength=tokenizer.size)

    def count_long(self, training: TrainingTask) -> LongTexts | None:
        """Count the training examples that are longer than the model takes; None where none can be."""
        return None

    def describe_lengths(self, training: TrainingTask) -> dict[str, str]:
        """Describe the held-out examples that are longer than the model takes, by a name for each split."""
        return {}

    def learn_tokenizers(self, config: Config, sources: Sequence[str], targets: Sequence[str]) -> TokenizerPair:
        """Learn the tokenizers of both sides: one for both, unless a task has two sides."""
        tokenizer = train_tokenizer(config.tokenizer, sources, config.data.language, keep_space=config.keep_space)
        return TokenizerPair(tokenizer, tokenizer, joint=True)

    def reserved_symbols(self, config: Config) -> list[str]:
        """Return the reserved symbols that the vocabulary needs, in the order of their ids."""
        return []

    def classes(self, run: RunDirectory) -> tuple[str, ...]:
        """Return the classes of a classifier, in the order of its outputs; none for other tasks."""
        return ()

    def exported_classes(self, run: RunDirectory) -> tuple[str, ...]:
        """Return `classes` for an export; raise `RunError` if the run is not fit for one."""
        return self.classes(run)

    def open_model(self, run: RunDirectory) -> Transformer:
        """Open the model of a run on the CPU, in eval mode.

        Raises:
            RunError: the run cannot be read.
        """
        config = run.config()
        return load_model(run, config, run.tokenizers(config), len(self.classes(run)))

    def load(self, run: Path, device: str = "auto") -> Model:
        """Open a run to apply it to raw text.

        Raises:
            RunError: the run cannot be read, or is of another task.
        """
        loaded: Model = model_class_of(self.name).load(run, device=device)
        return loaded

    @abstractmethod
    def evaluate(self, model: Model, config: Config, text: ScoredText, listener: Listener) -> Scored:
        """Score a model on a text; `config` is its configuration with settings replaced.

        Raises:
            UsageError, DataError: there is no such text, or it cannot be scored.
        """

    def compare(
        self, models: Sequence[Model], configs: Sequence[Config], text: SourcesAndReferences, listener: Listener
    ) -> Differences:
        """Compare the outputs of two models on a text; `configs` have settings replaced.

        Raises:
            UsageError: the task has no outputs (`scores_outputs`).
        """
        raise UsageError(f'models of task = "{self.name}" have no outputs to compare.')

    @abstractmethod
    def validation_loss(self, run: Path, pairs: Sequence[Pair]) -> float:
        """Return the loss of a run on validation examples, in nats a token or a text."""

    @abstractmethod
    def card_line(self, run: RunDirectory, listener: Listener) -> str | None:
        """Return a line with the scores of a run for its card; None without its text."""


AnyTask: TypeAlias = Task[Any]


@dataclass(frozen=True)
class LongTexts:
    """Training examples that are longer than the model takes.

    Attributes:
        long: their number.
        examples: number of all training examples.
        limit: maximum number of tokens.
        dropped: whether they are left out; else they are cut.
    """

    long: int
    examples: int
    limit: int
    dropped: bool


@dataclass(frozen=True)
class TrainingTask:
    """A task to train, with text, tokenizers and token ids.

    Attributes:
        task: the task.
        config: configuration of the run.
        corpus: text of the run.
        tokenizers: tokenizers of both sides; twice the same for tasks with one text.
        store: token ids of the training text; a `TokenStream` for language modelling.
        loss: loss of a model on a batch, in training.
        updates: returns the batches of this process.
        validation: returns the validation of a model, a function of the step. Its arguments are the model, the
            processes that share it, and a `Watch`.
        too_long: number of training examples left out because they have too many tokens.
        classes: classes of a classifier, in the order of its outputs.
        documents: returns further JSON documents of the run directory, by file name.
        finish: writes what the run directory holds of the trained model beside its weights.
    """

    task: AnyTask
    config: Config
    corpus: Corpus
    tokenizers: TokenizerPair
    store: TokenStore | TokenStream
    loss: Callable[[Any, Any], LossAndNll]
    updates: Callable[[World], BatchSource]
    validation: Callable[..., Callable[[int], ValidationReport]]
    too_long: int = 0
    classes: tuple[str, ...] = ()
    documents: Callable[[], Mapping[str, Mapping[str, Any]]] = dict
    finish: Callable[[], None] = lambda: None

    def model(self) -> Transformer:
        """Build a new model on the CPU."""
        return build_model(self.config, self.tokenizers, len(self.classes))

    def objective(self, model: Any) -> Objective:
        """Return a model with its loss."""
        return Objective(model, self.loss)

    @property
    def vocabulary(self) -> str:
        """Description of the vocabulary sizes, for a message."""
        tokenizers = [self.tokenizers.source, self.tokenizers.target][not self.config.spec.decodes :]
        sizes = "/".join(f"{tokenizer.size:,}" for tokenizer in tokenizers)
        return f"{sizes}, {len(self.classes):,} classes" if self.classes else sizes

    def begin(self, run: RunDirectory, environment: Mapping[str, Any]) -> None:
        """Write the files that a run directory has before the first step."""
        run.begin(self.config, self.tokenizers, environment, self.documents())
