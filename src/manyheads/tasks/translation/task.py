"""The task of translation: an encoder-decoder that learns from pairs of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.store import TextStore, TokenStore
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.tasks.batch_sources import CorpusUpdates, PairBatches
from manyheads.tasks.corpus import LANGUAGES, Corpus, language_profiles, longest_side
from manyheads.tasks.preparation import prepare_tokenizers, tokenise
from manyheads.tasks.task import Task, TrainingTask
from manyheads.tasks.translation.augmented_batches import augmented_batches
from manyheads.tasks.translation.scoring import Validation
from manyheads.text.tokenizer import TokenizerPair, train_tokenizers
from manyheads.training.log import Listener
from manyheads.training.objective import Objective, translation_loss


class TranslationTask(Task):
    """Translation from a source to a target language."""

    name = "translation"
    token_rows: ClassVar[Mapping[str, str]] = {
        "source_embedding.tokens.weight": "source",
        "target_embedding.tokens.weight": "target",
        "output.weight": "target",
        "output.bias": "target",
    }

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """See `Task.prepare`."""
        training, texts = config.training, corpus.train
        tokenizers = prepare_tokenizers(self, config, run, texts.sides, listener)
        store = tokenise(config, run, corpus, tokenizers, listener, max_length=longest_side(config))
        maker = _pair_batches(config, run, texts, store, tokenizers, listener)
        return TrainingTask(
            task=self,
            config=config,
            corpus=corpus,
            tokenizers=tokenizers,
            store=store,
            objective=lambda model: Objective(
                model, partial(translation_loss, smoothing=training.label_smoothing, r_drop=training.r_drop)
            ),
            updates=lambda world: CorpusUpdates(config, maker, world),
            validation=partial(Validation, config, corpus.valid, tokenizers),
            too_long=store.too_long,
            documents=lambda: {
                LANGUAGES: {name: profile.to_json() for name, profile in language_profiles(config, texts).items()}
            },
        )

    def build_model(self, config: Config, tokenizers: TokenizerPair, classes: Sequence[str]) -> EncoderDecoder:
        """See `Task.build_model`."""
        return EncoderDecoder(config.model, tokenizers.source.size, tokenizers.target.size)

    def learn_tokenizers(self, config: Config, sources: Sequence[str], targets: Sequence[str]) -> TokenizerPair:
        """See `Task.learn_tokenizers`."""
        return train_tokenizers(config.tokenizer, sources, targets, *config.languages)

    def describe_vocabulary(self, tokenizers: TokenizerPair, classes: Sequence[str]) -> str:
        """See `Task.describe_vocabulary`."""
        return f"{tokenizers.source.size:,}/{tokenizers.target.size:,}"


def _pair_batches(
    config: Config,
    run: RunDirectory,
    texts: TextStore,
    store: TokenStore,
    tokenizers: TokenizerPair,
    listener: Listener,
) -> PairBatches:
    """Return the maker of the batches of a translator, with augmentation if it is configured."""
    if config.data.augment is None:
        return PairBatches(config, texts, store, tokenizers)
    return augmented_batches(config, config.data.augment, run, (texts, store), tokenizers, listener)
