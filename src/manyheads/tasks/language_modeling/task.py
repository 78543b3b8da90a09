"""The task of language modelling: a decoder that learns to predict the next token of running text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.model.decoder_only import DecoderOnly
from manyheads.tasks.batch_sources import BlockUpdates
from manyheads.tasks.corpus import Corpus
from manyheads.tasks.language_modeling.scoring import TextValidation
from manyheads.tasks.preparation import make_stream, prepare_tokenizers
from manyheads.tasks.task import Task, TrainingTask
from manyheads.text.tokenizer import TokenizerPair
from manyheads.training.log import Listener
from manyheads.training.objective import Objective, next_token_loss


class LanguageModelingTask(Task):
    """Prediction of the next token."""

    name = "language-modeling"
    token_rows: ClassVar[Mapping[str, str]] = {"embedding.tokens.weight": "target", "output.weight": "target"}

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """See `Task.prepare`."""
        tokenizers = prepare_tokenizers(self, config, run, lambda most: (corpus.train.sides(most)[1], ()), listener)
        stream = make_stream(config, run, corpus, tokenizers, listener)
        texts = [pair.target for pair in corpus.valid]
        return TrainingTask(
            task=self,
            config=config,
            corpus=corpus,
            tokenizers=tokenizers,
            store=stream,
            objective=lambda model: Objective(
                model, partial(next_token_loss, smoothing=config.training.label_smoothing)
            ),
            updates=lambda world: BlockUpdates(config, stream, world),
            validation=partial(TextValidation, config, texts, tokenizers.target),
        )

    def build_model(self, config: Config, tokenizers: TokenizerPair, classes: Sequence[str]) -> DecoderOnly:
        """See `Task.build_model`."""
        return DecoderOnly(config.model, tokenizers.target.size, absent=tokenizers.target.absent)
