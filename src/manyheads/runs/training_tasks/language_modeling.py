"""Language modelling as training sees it: a decoder on one stream of tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from manyheads.checkpoint import RunDirectory, saving
from manyheads.config.schema import Config
from manyheads.data.stream import TokenStream
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.transformer import Transformer
from manyheads.runs.batch_sources import BlockUpdates
from manyheads.runs.corpus import ROOM_FOR_TEXT, Corpus
from manyheads.runs.prepare import prepare_single
from manyheads.runs.text_model_card import language_model_card
from manyheads.runs.text_scores import TextValidation
from manyheads.runs.training_tasks.interface import TrainingTask
from manyheads.text.tokenizer import EOS, TokenizerPair
from manyheads.training.distributed import World
from manyheads.training.language_modeling import LanguageModelObjective
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.objective import Objective
from manyheads.training.prefetch import BatchSource
from manyheads.training.progress import Progress

__all__ = ["LanguageModelingTask", "prepare_language_model"]


class LanguageModelingTask(TrainingTask):
    """Language modelling (see `TrainingTask`)."""

    def __init__(self, config: Config, corpus: Corpus, tokenizers: TokenizerPair, stream: TokenStream) -> None:
        super().__init__(config, corpus, tokenizers)
        self.tokenizer = tokenizers.target
        self.stream = stream

    def model(self) -> DecoderOnly:
        """Build a new model."""
        return DecoderOnly(self.config.model, self.tokenizer.size, absent=self.tokenizer.absent)

    def objective(self, model: Transformer) -> Objective:
        """Return the objective: cross-entropy of the next token."""
        assert isinstance(model, DecoderOnly)
        return LanguageModelObjective(model, self.config.training.label_smoothing)

    def updates(self, world: World) -> BatchSource:
        """Return blocks of the stream."""
        return BlockUpdates(self.config, self.stream, world)

    def validation(self, model: Transformer, world: World) -> Callable[[int], ValidationReport]:
        """Return the validation: loss of all held-out text over a sliding window."""
        assert isinstance(model, DecoderOnly)
        texts = [pair.target for pair in self.corpus.valid]
        return TextValidation(self.config, texts, self.tokenizer, model, world)

    def card(self, progress: Progress) -> str:
        """Return the model card."""
        return language_model_card(self.config, self.tokenizer, progress)


def prepare_language_model(
    config: Config, run: RunDirectory, corpus: Corpus, listener: Listener
) -> LanguageModelingTask:
    """Prepare the tokenizer and the token stream of a run; stored ones are reused."""
    tokenizers = prepare_single(config, run, lambda most: corpus.train.sides(most)[1], listener)
    tokenizer = tokenizers.target
    folder = run.path / "cache" / "train"
    made_of = [corpus.train.sha256, tokenizer.sha256, config.data.documents]
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()
    if not TokenStream.has(folder, key):
        with saving("the token ids", folder, ROOM_FOR_TEXT):
            TokenStream.build(
                folder, corpus.train, tokenizer.encode, key=key, end=EOS, whole_files=config.whole_files
            )
    return LanguageModelingTask(config, corpus, tokenizers, TokenStream(folder))
