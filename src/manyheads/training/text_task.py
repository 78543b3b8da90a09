"""Tasks that learn from text alone: language modelling, and masked language modelling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from bitext.letters import has_text
from bitext.pairs import Pair
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.training_text import Corpus
from manyheads.reports import NO_LISTENER, Listener
from manyheads.training.batches import BatchSource
from manyheads.training.preparation import prepare_tokenizers
from manyheads.training.scored_text import ScoredText, first_held_out
from manyheads.training.task import Loaded, Scored, Task, TrainingTask

_Model = TypeVar("_Model", bound=Loaded)


class TextScores(Scored, Protocol):
    """Scores of a run on texts."""

    def card_text(self, where: str) -> str:
        """Return the scores for a card; `where` is the name of the text."""


class TextTask(Task[_Model]):
    """A task that learns from text alone.

    Attributes:
        batch_loss: loss of a model on a batch, in training.
        tokenise: returns the token ids of a corpus; see `preparation.tokenise`.
        updates: returns the batches of a process from the configuration, text, token ids, tokenizers and processes.
        validate: makes the validation of a model; see `TrainingTask.validation`.
        score: scores a model on texts of which one is not empty, with a configuration and a listener.
        card_size: amount of text read for a model card.
        card_texts: returns those of the texts that are scored for it.
    """

    batch_loss: ClassVar[Callable[..., Any]]
    tokenise: ClassVar[Callable[..., Any]]
    updates: ClassVar[Callable[..., BatchSource]]
    validate: ClassVar[Callable[..., Any]]
    score: ClassVar[Callable[..., TextScores]]
    card_size: ClassVar[int]
    card_texts: ClassVar[Callable[..., Sequence[str]]]

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """Prepare the tokenizer, the token ids and the validation of a language model."""
        tokenizers = prepare_tokenizers(self, config, run, lambda most: (corpus.train.sides(most)[1], ()), listener)
        store = self.tokenise(config, run, corpus, tokenizers, listener)
        return TrainingTask(
            task=self,
            config=config,
            corpus=corpus,
            tokenizers=tokenizers,
            store=store,
            loss=partial(self.batch_loss, smoothing=config.training.label_smoothing),
            updates=partial(self.updates, config, corpus.train, store, tokenizers),
            validation=partial(self.validate, config, [pair.target for pair in corpus.valid], tokenizers.target),
        )

    def evaluate(self, model: _Model, config: Config, text: ScoredText, listener: Listener) -> TextScores:
        """Score a language model on the lines of a text."""
        return self.score(model, config, text.lines(config), listener)

    def validation_loss(self, run: Path, pairs: Sequence[Pair]) -> float:
        """Return the loss on the target texts of the pairs, in nats a token."""
        model = self.load(run)
        return self.score(model, model.config, [pair.target for pair in pairs], NO_LISTENER).loss

    def card_line(self, run: RunDirectory, listener: Listener) -> str | None:
        """Score the first held-out texts of a run, and return the line for its card."""
        model = self.load(run.path)
        examples, which = first_held_out(run, model.config, self.card_size)
        texts = self.card_texts([pair.target for pair in examples])
        if not any(map(has_text, texts)):
            return None
        return f"- Scores on {self.score(model, model.config, texts, listener).card_text(which)}"
