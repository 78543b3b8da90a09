"""The task of classification: an encoder that learns from texts with a label each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bitext.letters import has_text
from bitext.pairs import Pair
from bitext.shell import command_line
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.sampler import evenly
from manyheads.data.store import TokenStore
from manyheads.data.training_text import Corpus, held_out
from manyheads.errors import RunError
from manyheads.evaluation import paired_bootstrap_of_labels
from manyheads.inference.classifier import Classifier
from manyheads.inference.labels import LABELS, Labels
from manyheads.inference.texts import encode_texts, longest_text
from manyheads.reports import NO_LISTENER, Listener
from manyheads.tasks.classification.scoring import (
    ClassEvaluation,
    ClassValidation,
    check_labels,
    class_weights,
    classify_in_groups,
    evaluate_labels,
    label_numbers,
    labels_of,
    report_classes,
    warnings_of,
    with_text,
)
from manyheads.text.joined_texts import split_texts
from manyheads.text.tokenizer import Tokenizer
from manyheads.training.batch_sources import CorpusUpdates, LabelledBatches
from manyheads.training.initialize import Sides
from manyheads.training.objective import classification_loss
from manyheads.training.preparation import count_ids, prepare_tokenizers, tokenise
from manyheads.training.scored_text import ScoredText, first_held_out
from manyheads.training.task import Differences, LongTexts, SourcesAndReferences, Task, TrainingTask

_CARD_TEXTS = 1_000  # texts scored for a model card
_ALL_TEXTS = 1_000_000  # texts of a test set that are read


class ClassificationTask(Task[Classifier]):
    """Classification of texts, or of pairs of texts."""

    name = "classification"
    head = ("pooler.", "output.")
    pipeline = "text-classification"
    scores_outputs = True
    token_rows: ClassVar[Mapping[str, str]] = {"embedding.tokens.weight": "source"}

    def prepare(self, config: Config, run: RunDirectory, corpus: Corpus, listener: Listener) -> TrainingTask:
        """Prepare the tokenizer, the token ids and the labels of a classifier."""
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
            loss=partial(classification_loss, smoothing=smoothing, class_weights=weights),
            updates=lambda world: CorpusUpdates(config, maker, world),
            validation=partial(ClassValidation, config, corpus.valid, tokenizer, labels),
            classes=names,
            documents=lambda: {LABELS: labels.to_json()},
        )

    def classes(self, run: RunDirectory) -> tuple[str, ...]:
        """Return the labels of a run."""
        return Labels.of_run(run).names

    def sample_sides(self, training: TrainingTask, most: int) -> Iterator[tuple[str, Tokenizer, Sequence[str]]]:
        """Yield name, tokenizer and texts of both splits; the two texts of a pair are apart."""
        valid = [pair.source for pair in training.corpus.valid[:most]]
        for name, texts in (("train", training.corpus.train.sides(most)[0]), ("valid", valid)):
            yield name, training.tokenizers.source, [part for text in texts for part in split_texts(text)]

    def count_tokens(self, training: TrainingTask) -> Iterator[tuple[str, Tokenizer, NDArray[np.int64]]]:
        """Yield the tokenizer and its token frequencies in train."""
        assert isinstance(training.store, TokenStore)
        tokenizer = training.tokenizers.source
        yield "vocabulary", tokenizer, count_ids(training.store.source.values, tokenizer)

    def count_long(self, training: TrainingTask) -> LongTexts:
        """Count the texts that are longer than the model takes."""
        assert isinstance(training.store, TokenStore)
        lengths, limit = training.store.source.lengths, longest_text(training.config)
        return LongTexts(int((lengths > limit).sum()), len(lengths), limit, dropped=False)

    def exported_classes(self, run: RunDirectory) -> tuple[str, ...]:
        """Return the labels of a run whose head was trained; raise `RunError` for another."""
        if not Labels.of_run(run).trained:
            train = command_line("manyheads", "train", "CONFIG", "--set", f"model.init_from={run.path}")
            raise RunError(
                f"the head of {run.path} was never trained: its labels mean nothing. Fine-tune it first: {train}"
            )
        return self.classes(run)

    def evaluate(self, model: Classifier, config: Config, text: ScoredText, listener: Listener) -> ClassEvaluation:
        """Score a classifier on labelled texts."""
        model.config = config
        texts, labels = text.pairs(config)
        return evaluate_labels(model, texts, labels, listener, str(text.reference or f"data.{text.split}"))

    def compare(
        self,
        models: Sequence[Classifier],
        configs: Sequence[Config],
        text: SourcesAndReferences,
        listener: Listener,
    ) -> Differences:
        """Compare two classifiers; a label that is unknown to one of them counts as wrong for it."""
        sources, references = text
        filled = with_text(sources, listener)
        texts, names = [sources[index] for index in filled], dict[str, None]()
        outputs = []
        for model, config in zip(models, configs, strict=True):
            model.config = config
            listener.message(f"classifying {len(texts):,} texts")
            with listener.phase("classifying", len(texts), "texts") as advance:
                outputs.append([result.label for result in classify_in_groups(model, texts, advance)])
            names |= dict.fromkeys(model.labels.names)
        labels = label_numbers([references[index] for index in filled], [*names], "the text to score")
        own, other = (label_numbers(output, [*names], "the output") for output in outputs)
        return Differences(
            results=(
                paired_bootstrap_of_labels(own, other, labels, len(names), metric="accuracy"),
                paired_bootstrap_of_labels(own, other, labels, len(names), metric="macro_f1"),
            ),
            description=f"{len(texts):,} texts",
        )

    def validation_loss(self, run: Path, pairs: Sequence[Pair]) -> float:
        """Return the loss on labelled texts, in nats a text."""
        texts, labels = [pair.source for pair in pairs], [pair.target for pair in pairs]
        return evaluate_labels(self.load(run), texts, labels, NO_LISTENER).loss

    def card_line(self, run: RunDirectory, listener: Listener) -> str | None:
        """Score held-out texts, evenly spaced because files may be sorted by label; return the line for a card."""
        classifier = self.load(run.path)
        examples, which = first_held_out(run, classifier.config, _ALL_TEXTS)
        pairs = [examples[index] for index in evenly(len(examples), _CARD_TEXTS)]
        sources, labels = [pair.source for pair in pairs], [pair.target for pair in pairs]
        if not any(has_text(text) for text in sources):
            return None
        result = evaluate_labels(classifier, sources, labels, listener, which)
        return (
            f"- Scores on {result.examples:,} texts of {which}: accuracy {result.scores.accuracy:.2%}, macro F1 "
            f"{result.scores.macro_f1:.2%}, calibration error {result.scores.calibration_error:.2%}"
        )


TASK = ClassificationTask()
