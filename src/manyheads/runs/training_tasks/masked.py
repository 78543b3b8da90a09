"""Masked language modelling as training sees it: an encoder that predicts hidden tokens of its text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.masked import MaskedText, MaskedTexts, blank_masked, make_masked
from manyheads.data.store import TokenStore
from manyheads.data.texts import TextStore
from manyheads.model.encoder_only import MaskedLanguageModel
from manyheads.model.transformer import Transformer
from manyheads.runs.batch_sources import CorpusUpdates
from manyheads.runs.corpus import Corpus
from manyheads.runs.prepare import prepare_single, tokenise
from manyheads.runs.text_model_card import masked_card
from manyheads.runs.text_scores import HiddenTokens, hide
from manyheads.runs.training_tasks.interface import TrainingTask
from manyheads.tasks.classification import longest_text
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer, TokenizerPair
from manyheads.training.distributed import World
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.objective import MaskedObjective, Objective
from manyheads.training.prefetch import BatchSource
from manyheads.training.progress import Progress

__all__ = ["MaskedTask", "prepare_masked"]


def prepare_masked(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> MaskedTask:
    """Prepare vocabulary and token ids of a run; stored ones are reused."""
    tokenizers = prepare_single(config, run, lambda most: corpus.train.sides(most)[1], listener)
    store = tokenise(config, run, corpus, tokenizers, max_length=None)
    return MaskedTask(config, corpus, tokenizers, store)


class MaskedTask(TrainingTask):
    """Masked language modelling (see `TrainingTask`)."""

    def __init__(self, config: Config, corpus: Corpus, tokenizers: TokenizerPair, store: TokenStore) -> None:
        super().__init__(config, corpus, tokenizers)
        self.store = store

    def model(self) -> MaskedLanguageModel:
        """Build a new model."""
        return MaskedLanguageModel(self.config.model, self.tokenizers.source.size, pad=PAD)

    def objective(self, model: Transformer) -> Objective:
        """Return the objective: cross-entropy of the masked tokens."""
        assert isinstance(model, MaskedLanguageModel)
        return MaskedObjective(model, self.config.training.label_smoothing)

    def updates(self, world: World) -> BatchSource:
        """Return batches of similar lengths."""
        maker = MaskedBatches(self.config, self.corpus.train, self.store, self.tokenizers.source)
        return CorpusUpdates(self.config, self.corpus.train, self.store, maker, world)

    def validation(self, model: Transformer, world: World) -> Callable[[int], ValidationReport]:
        """Return the validation: loss of the masked tokens of held-out texts."""
        assert isinstance(model, MaskedLanguageModel)
        texts = [pair.target for pair in self.corpus.valid]
        hidden = HiddenTokens(self.config, texts, self.tokenizers.source, world)

        def validate(step: int) -> ValidationReport:
            nats, tokens = hidden.score(model)
            return ValidationReport(step, nats / tokens, {}, False, None, attention_entropy=hidden.entropy(model))

        return validate

    def card(self, progress: Progress) -> str:
        """Return the model card."""
        return masked_card(self.config, self.tokenizers.source.size, progress)


class MaskedBatches:
    """Makes batches of masked texts (see `BatchMaker`), with new masks each time."""

    def __init__(self, config: Config, texts: TextStore, store: TokenStore, tokenizer: Tokenizer) -> None:
        self.texts = texts
        self.store = store
        self.tokenizer = tokenizer
        self.sampling = config.tokenizer.sampling > 0
        self.share = config.training.masked
        self.limit = longest_text(config)
        lengths = np.minimum(store.target.lengths, self.limit) + 2
        self.lengths = (lengths, lengths)

    def rows(self, pairs: NDArray[np.int64], rng: np.random.Generator) -> list[MaskedText]:
        """Return these texts with some tokens masked; of long texts a part."""
        ids: Sequence[Any] = [self.store.target[pair] for pair in pairs]
        if self.sampling:
            texts = self.texts.text(1, self.store.rows[pairs])
            ids = self.tokenizer.sample(texts, int(rng.integers(2**31)))
        return [self.hidden(row, rng) for row in ids]

    def hidden(self, ids: Any, rng: np.random.Generator) -> MaskedText:
        """Mask one text."""
        first = int(rng.integers(len(ids) - self.limit + 1)) if len(ids) > self.limit else 0
        return hide(ids[first : first + self.limit], self.share, rng, self.tokenizer)

    def batch(self, rows: Sequence[MaskedText]) -> MaskedTexts:
        """Make a batch."""
        return make_masked(rows, pad=PAD, bos=BOS, eos=EOS)

    def blank(self) -> MaskedTexts:
        """Return a batch without masked tokens."""
        return blank_masked(pad=PAD, bos=BOS, eos=EOS)
