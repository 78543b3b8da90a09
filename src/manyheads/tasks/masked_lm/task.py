"""The task of masked language modelling: an encoder that learns to predict the masked tokens of its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.model.encoder_only import MaskedLanguageModel
from manyheads.tasks.batch_sources import CorpusUpdates, MaskedBatches
from manyheads.tasks.corpus import Corpus
from manyheads.tasks.masked_lm.scoring import MaskedValidation
from manyheads.tasks.preparation import prepare_tokenizers, tokenise
from manyheads.tasks.task import Task, TrainingTask
from manyheads.text.tokenizer import PAD, TokenizerPair
from manyheads.training.log import Listener
from manyheads.training.objective import Objective, masked_loss


class MaskedTask(Task):
    """Prediction of masked tokens."""

    name = "masked-lm"
    head = ("transform.", "transform_norm.", "output.")
    token_rows: ClassVar[Mapping[str, str]] = {
        "embedding.tokens.weight": "source",
        "output.weight": "source",
        "output.bias": "source",
    }

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """See `Task.prepare`."""
        tokenizers = prepare_tokenizers(self, config, run, lambda most: (corpus.train.sides(most)[1], ()), listener)
        store = tokenise(config, run, corpus, tokenizers, listener, max_length=None)
        maker = MaskedBatches(config, corpus.train, store, tokenizers)
        texts = [pair.target for pair in corpus.valid]
        return TrainingTask(
            task=self,
            config=config,
            corpus=corpus,
            tokenizers=tokenizers,
            store=store,
            objective=lambda model: Objective(
                model, partial(masked_loss, smoothing=config.training.label_smoothing)
            ),
            updates=lambda world: CorpusUpdates(config, maker, world),
            validation=partial(MaskedValidation, config, texts, tokenizers.source),
        )

    def build_model(self, config: Config, tokenizers: TokenizerPair, classes: Sequence[str]) -> MaskedLanguageModel:
        """See `Task.build_model`."""
        return MaskedLanguageModel(config.model, tokenizers.target.size, pad=PAD)
