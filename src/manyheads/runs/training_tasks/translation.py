"""Translation as training sees it: an encoder-decoder on pairs of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.store import TokenStore
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.transformer import Transformer
from manyheads.runs.batch_sources import CorpusUpdates, PairBatches
from manyheads.runs.corpus import Corpus
from manyheads.runs.languages import LANGUAGES, languages_document
from manyheads.runs.model_card import translator_card
from manyheads.runs.training_tasks.interface import TrainingTask
from manyheads.runs.validation import Validation
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.distributed import World
from manyheads.training.log import ValidationReport
from manyheads.training.objective import Objective, TranslationObjective
from manyheads.training.prefetch import BatchSource
from manyheads.training.progress import Progress

__all__ = ["TranslationTask"]


class TranslationTask(TrainingTask):
    """Translation (see `TrainingTask`)."""

    def __init__(self, config: Config, corpus: Corpus, tokenizers: TokenizerPair, store: TokenStore) -> None:
        super().__init__(config, corpus, tokenizers)
        self.store = store

    @property
    def too_long(self) -> int:
        """Number of pairs left out because a side has more than `data.max_length` tokens."""
        return self.store.too_long

    def begin(self, run: RunDirectory, environment: Mapping[str, Any]) -> None:
        """Write the files of a run, and the language profiles."""
        more = {LANGUAGES: languages_document(self.config, self.corpus.train)}
        run.begin(self.config, self.tokenizers, environment, more)

    @property
    def vocabulary(self) -> str:
        """Description of the vocabulary sizes of source and target."""
        return f"{self.tokenizers.source.size:,}/{self.tokenizers.target.size:,}"

    def model(self) -> EncoderDecoder:
        """Build a new model."""
        return EncoderDecoder(self.config.model, self.tokenizers.source.size, self.tokenizers.target.size)

    def objective(self, model: Transformer) -> Objective:
        """Return the objective: cross-entropy of the next target token."""
        assert isinstance(model, EncoderDecoder)
        training = self.config.training
        return TranslationObjective(model, training.label_smoothing, training.r_drop)

    def updates(self, world: World) -> BatchSource:
        """Return batches of similar lengths."""
        texts, store = self.corpus.train, self.store
        return CorpusUpdates(
            self.config, texts, store, PairBatches(self.config, texts, store, self.tokenizers), world
        )

    def validation(self, model: Transformer, world: World) -> Callable[[int], ValidationReport]:
        """Return the validation: loss of all held-out pairs, BLEU and chrF of some."""
        assert isinstance(model, EncoderDecoder)
        return Validation(self.config, self.corpus.valid, self.tokenizers, model, world)

    def card(self, progress: Progress) -> str:
        """Return the model card."""
        return translator_card(self.config, self.tokenizers, progress)
