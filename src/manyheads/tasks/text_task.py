"""Tasks that learn from text alone: language modelling, and masked language modelling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.letters import has_text
from manyheads.data.store import TokenStore, TokenStream
from manyheads.tasks.corpus import Corpus
from manyheads.tasks.preparation import prepare_tokenizers
from manyheads.tasks.scored_text import ScoredText, first_held_out
from manyheads.tasks.task import Loaded, Scored, Task, TrainingTask
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.batches import BatchSource
from manyheads.training.distributed import World
from manyheads.training.log import NO_LISTENER, Listener, ValidationReport
from manyheads.training.objective import LossAndNll

_Model = TypeVar("_Model", bound=Loaded)


class TextScores(Scored, Protocol):
    """Scores of a run on texts."""

    def card_text(self, where: str) -> str:
        """Return the scores for a card; `where` is the name of the text."""


class TextTask(Task[_Model]):
    """A task that learns from text alone.

    Attributes:
        batch_loss: loss of a model on a batch, in training.
        validate: makes the validation of a model; see `TrainingTask.validation`.
        card_size: amount of text scored for a model card, in the unit of `card_texts`.
    """

    batch_loss: ClassVar[Callable[..., LossAndNll]]
    validate: ClassVar[Callable[..., Callable[[int], ValidationReport]]]
    card_size: ClassVar[int]

    @abstractmethod
    def tokenise(
        self, config: Config, run: RunDirectory, corpus: Corpus, tokenizers: TokenizerPair, listener: Listener
    ) -> TokenStore | TokenStream:
        """Return the token ids of the training text."""

    @abstractmethod
    def updates(self, training: TrainingTask, world: World) -> BatchSource:
        """Return the batches of this process."""

    @abstractmethod
    def score(self, model: _Model, config: Config, texts: Sequence[str], listener: Listener) -> TextScores:
        """Score normalised texts in memory, not all of them empty; settings may differ from those of the run."""

    @abstractmethod
    def card_texts(self, texts: Sequence[str]) -> Sequence[str]:
        """Return those of the first held-out texts that are scored for a model card."""

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """See `Task.prepare`."""
        tokenizers = prepare_tokenizers(self, config, run, lambda most: (corpus.train.sides(most)[1], ()), listener)
        training = TrainingTask(
            task=self,
            config=config,
            corpus=corpus,
            tokenizers=tokenizers,
            store=self.tokenise(config, run, corpus, tokenizers, listener),
            loss=partial(self.batch_loss, smoothing=config.training.label_smoothing),
            updates=lambda world: self.updates(training, world),
            validation=partial(self.validate, config, [pair.target for pair in corpus.valid], tokenizers.target),
        )
        return training

    def evaluate(self, model: _Model, config: Config, text: ScoredText, listener: Listener) -> TextScores:
        """See `Task.evaluate`."""
        return self.score(model, config, text.lines(config), listener)

    def validation_loss(self, run: Path, pairs: Sequence[Pair]) -> float:
        """See `Task.validation_loss`."""
        model = self.load(run)
        return self.score(model, model.config, [pair.target for pair in pairs], NO_LISTENER).loss

    def card_line(self, run: RunDirectory, listener: Listener) -> str | None:
        """See `Task.card_line`."""
        model = self.load(run.path)
        examples, which = first_held_out(run, model.config, self.card_size)
        texts = self.card_texts([pair.target for pair in examples])
        if not any(map(has_text, texts)):
            return None
        return f"- Scores on {self.score(model, model.config, texts, listener).card_text(which)}"
