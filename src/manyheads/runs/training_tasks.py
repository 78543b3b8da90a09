"""The tasks that can be trained: translation, classification, language modelling, masked language modelling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.labelled import split_texts
from manyheads.data.store import TokenStore
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.runs.batch_sources import BlockUpdates, CorpusUpdates, LabelledBatches, MaskedBatches, PairBatches
from manyheads.runs.classification import ClassValidation, check_labels, label_numbers, labels_of, warnings_of
from manyheads.runs.corpus import LANGUAGES, Corpus, held_out, language_profiles
from manyheads.runs.language_modeling import TextValidation
from manyheads.runs.masked import MaskedValidation
from manyheads.runs.model_card import classifier_card, language_model_card, masked_card, translator_card
from manyheads.runs.prepare import TrainingTask, make_stream, prepare, prepare_single, tokenise
from manyheads.runs.translation import Validation
from manyheads.tasks.classification import LABELS, Labels, encode_texts, longest_text
from manyheads.text.tokenizer import PAD
from manyheads.training.distributed import World
from manyheads.training.log import Listener
from manyheads.training.objective import (
    ClassificationObjective,
    LanguageModelObjective,
    MaskedObjective,
    TranslationObjective,
)

__all__ = ["TrainingTask", "prepare_task"]

UNBALANCED = 10  # examples of the largest class over those of the smallest, above which a warning is given


def prepare_task(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare vocabularies and token ids of a run; stored ones are reused."""
    match config.task:
        case "translation":
            return prepare_translation(config, run, corpus, listener)
        case "classification":
            return prepare_classification(config, run, corpus, listener)
        case "language-modeling":
            return prepare_language_model(config, run, corpus, listener)
        case "masked-lm":
            return prepare_masked(config, run, corpus, listener)


def prepare_translation(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare the training of an encoder-decoder on pairs of texts."""
    tokenizers, store = prepare(config, run, corpus, listener)
    source_size, target_size = tokenizers.source.size, tokenizers.target.size
    training, texts = config.training, corpus.train

    def updates(world: World) -> CorpusUpdates:
        return CorpusUpdates(config, texts, store, PairBatches(config, texts, store, tokenizers), world)

    return TrainingTask(
        config=config,
        corpus=corpus,
        tokenizers=tokenizers,
        store=store,
        model=lambda: EncoderDecoder(config.model, source_size, target_size),
        objective=lambda model: TranslationObjective(model, training.label_smoothing, training.r_drop),
        updates=updates,
        validation=lambda model, world: Validation(config, corpus.valid, tokenizers, model, world),
        card=lambda progress: translator_card(config, tokenizers, progress),
        vocabulary=f"{source_size:,}/{target_size:,}",
        too_long=store.too_long,
        documents=lambda: {
            LANGUAGES: {name: profile.to_json() for name, profile in language_profiles(config, texts).items()}
        },
    )


def prepare_language_model(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare the training of a decoder on one stream of tokens."""
    tokenizers = prepare_single(config, run, lambda most: corpus.train.sides(most)[1], listener)
    stream, tokenizer = make_stream(config, run, corpus, tokenizers), tokenizers.target
    texts = [pair.target for pair in corpus.valid]
    return TrainingTask(
        config=config,
        corpus=corpus,
        tokenizers=tokenizers,
        store=stream,
        model=lambda: DecoderOnly(config.model, tokenizer.size, absent=tokenizer.absent),
        objective=lambda model: LanguageModelObjective(model, config.training.label_smoothing),
        updates=lambda world: BlockUpdates(config, stream, world),
        validation=lambda model, world: TextValidation(config, texts, tokenizer, model, world),
        card=lambda progress: language_model_card(config, tokenizer, progress),
        vocabulary=f"{tokenizer.size:,}",
    )


def prepare_masked(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare the training of an encoder that predicts hidden tokens of its text."""
    tokenizers = prepare_single(config, run, lambda most: corpus.train.sides(most)[1], listener)
    store, tokenizer = tokenise(config, run, corpus, tokenizers, max_length=None), tokenizers.source
    texts = [pair.target for pair in corpus.valid]

    def updates(world: World) -> CorpusUpdates:
        maker = MaskedBatches(config, corpus.train, store, tokenizer)
        return CorpusUpdates(config, corpus.train, store, maker, world)

    return TrainingTask(
        config=config,
        corpus=corpus,
        tokenizers=tokenizers,
        store=store,
        model=lambda: MaskedLanguageModel(config.model, tokenizer.size, pad=PAD),
        objective=lambda model: MaskedObjective(model, config.training.label_smoothing),
        updates=updates,
        validation=lambda model, world: MaskedValidation(config, texts, tokenizer, model, world),
        card=lambda progress: masked_card(config, tokenizer.size, progress),
        vocabulary=f"{tokenizer.size:,}",
    )


def prepare_classification(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
    """Prepare the training of an encoder on texts with a label each.

    Raises:
        DataError: the training text has only one label, or the validation or test text has unknown ones.
    """
    labels = Labels.of_run(run) if run.exists else labels_of(corpus)
    names = labels.names
    for warning in warnings_of(config, corpus, names):
        listener.message(f"warning: {warning}")
    check_labels(corpus.valid, names, "data.valid")
    if config.data.test is not None and config.data.drop_overlap:  # read before, as it is held out
        check_labels(held_out(config, "test"), names, "data.test")

    def single_texts(most: int | None) -> list[str]:
        return [text for example in corpus.train.sides(most)[0] for text in split_texts(example)]

    tokenizers = prepare_single(config, run, single_texts, listener)
    tokenizer = tokenizers.source

    def numbers(texts: Sequence[str]) -> list[list[int]]:
        return [[number] for number in label_numbers(texts, names, "data.train").tolist()]

    def ids(texts: Sequence[str]) -> list[list[int]]:
        return encode_texts(tokenizer.encode, texts, tokenizer.marks_between)

    store = tokenise(config, run, corpus, tokenizers, (ids, numbers), max_length=None)
    counts = np.bincount(store.target.values, minlength=len(names))
    report_classes(config, store, counts, names, listener)

    def updates(world: World) -> CorpusUpdates:
        maker = LabelledBatches(config, corpus.train, store, tokenizer)
        return CorpusUpdates(config, corpus.train, store, maker, world)

    return TrainingTask(
        config=config,
        corpus=corpus,
        tokenizers=tokenizers,
        store=store,
        model=lambda: TextClassifier(config.model, tokenizer.size, len(names), pad=PAD),
        objective=lambda model: ClassificationObjective(
            model, config.training.label_smoothing, class_weights(config, counts)
        ),
        updates=updates,
        validation=lambda model, world: ClassValidation(config, corpus.valid, tokenizer, labels, model, world),
        card=lambda progress: classifier_card(config, tokenizer.size, names, progress),
        vocabulary=f"{tokenizer.size:,}, {len(names):,} classes",
        classes=names,
        documents=lambda: {LABELS: labels.to_json()},
    )


def class_weights(config: Config, counts: NDArray[np.int64]) -> torch.Tensor | None:
    """Return the weight of each class (C,) float32, from the number of its examples; None if all weigh the same."""
    if config.training.class_weights == "none":
        return None
    return torch.tensor(counts.sum() / (len(counts) * np.maximum(1, counts)), dtype=torch.float32)


def report_classes(
    config: Config, store: TokenStore, counts: NDArray[np.int64], names: Sequence[str], listener: Listener
) -> None:
    """Report truncated texts and rare classes."""
    limit, lengths = longest_text(config), store.source.lengths
    cut = int((lengths > limit).sum())
    if cut:
        listener.message(f"{cut:,} of {len(lengths):,} texts are longer than {limit:,} tokens: cut there")
    most, fewest = int(counts.argmax()), int(counts.argmin())
    if counts[most] > UNBALANCED * counts[fewest]:
        listener.message(
            f'warning: unbalanced classes: {counts[most]:,} examples of "{names[most]}", {counts[fewest]:,} of '
            f'"{names[fewest]}". Accuracy says little then: look at macro F1, and try '
            'training.class_weights = "balanced".'
        )
