"""The task of classification: an encoder that learns from texts with a label each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.labelled import split_texts
from manyheads.model.encoder_only import TextClassifier
from manyheads.tasks.batch_sources import CorpusUpdates, LabelledBatches
from manyheads.tasks.classification.classifier import LABELS, Labels, encode_texts
from manyheads.tasks.classification.scoring import (
    ClassValidation,
    check_labels,
    class_weights,
    label_numbers,
    labels_of,
    report_classes,
    warnings_of,
)
from manyheads.tasks.corpus import Corpus, held_out
from manyheads.tasks.initialize import Sides
from manyheads.tasks.preparation import prepare_tokenizers, tokenise
from manyheads.tasks.task import Task, TrainingTask
from manyheads.text.tokenizer import PAD, TokenizerPair
from manyheads.training.log import Listener
from manyheads.training.objective import Objective, classification_loss


class ClassificationTask(Task):
    """Classification of texts, or of pairs of texts."""

    name = "classification"
    head = ("pooler.", "output.")
    token_rows: ClassVar[Mapping[str, str]] = {"embedding.tokens.weight": "source"}

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """See `Task.prepare`.

        Raises:
            DataError: the training text has only one label, or the validation or test text has unknown ones.
        """
        labels = Labels.of_run(run) if run.exists else labels_of(corpus)
        names = labels.names
        for warning in warnings_of(config, corpus, names):
            listener.message(f"warning: {warning}")
        check_labels(corpus.valid, names, "data.valid")
        if config.data.test is not None and config.data.drop_overlap:  # already read, as it is held out
            check_labels(held_out(config, "test"), names, "data.test")

        def single_texts(most: int | None) -> Sides:
            return [text for example in corpus.train.sides(most)[0] for text in split_texts(example)], ()

        tokenizers = prepare_tokenizers(self, config, run, single_texts, listener)
        tokenizer = tokenizers.source

        def numbers(texts: Sequence[str]) -> list[list[int]]:
            return [[number] for number in label_numbers(texts, names, "data.train").tolist()]

        def ids(texts: Sequence[str]) -> list[list[int]]:
            return encode_texts(tokenizer.encode, texts, tokenizer.marks_between)

        store = tokenise(config, run, corpus, tokenizers, listener, (ids, numbers), max_length=None)
        maker = LabelledBatches(config, corpus.train, store, tokenizers)
        counts = np.bincount(store.target.values, minlength=len(names))
        report_classes(config, store.source.lengths, counts, names, listener)
        weights, smoothing = class_weights(config, counts), config.training.label_smoothing
        return TrainingTask(
            task=self,
            config=config,
            corpus=corpus,
            tokenizers=tokenizers,
            store=store,
            objective=lambda model: Objective(
                model, partial(classification_loss, smoothing=smoothing, class_weights=weights)
            ),
            updates=lambda world: CorpusUpdates(config, maker, world),
            validation=partial(ClassValidation, config, corpus.valid, tokenizer, labels),
            classes=names,
            documents=lambda: {LABELS: labels.to_json()},
        )

    def build_model(self, config: Config, tokenizers: TokenizerPair, classes: Sequence[str]) -> TextClassifier:
        """See `Task.build_model`."""
        return TextClassifier(config.model, tokenizers.source.size, len(classes), pad=PAD)

    def describe_vocabulary(self, tokenizers: TokenizerPair, classes: Sequence[str]) -> str:
        """See `Task.describe_vocabulary`."""
        return f"{tokenizers.target.size:,}, {len(classes):,} classes"
