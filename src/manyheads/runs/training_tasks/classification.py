"""Classification as training sees it: an encoder, texts with a label each, and the names of the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.examples import Example, Examples, blank_examples, cut_text, make_examples, make_texts
from manyheads.data.labelled import BETWEEN, split_texts
from manyheads.data.store import TokenStore
from manyheads.data.texts import TextStore
from manyheads.errors import DataError
from manyheads.evaluation import accuracy, confusion_matrix, macro_f1
from manyheads.inspection.capture import mean_entropies, watch_text
from manyheads.model.encoder_only import TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.runs.batch_sources import CorpusUpdates
from manyheads.runs.corpus import Corpus, held_out
from manyheads.runs.prepare import prepare_single, tokenise
from manyheads.runs.text_model_card import classifier_card
from manyheads.runs.training_tasks.interface import TrainingTask
from manyheads.runs.validation import LOOKED_INTO, evenly
from manyheads.tasks.classification import LABELS, Labels, class_probabilities, encode_texts, longest_text
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer, TokenizerPair
from manyheads.training.distributed import World
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.objective import ClassificationObjective, Objective
from manyheads.training.prefetch import BatchSource
from manyheads.training.progress import Progress

__all__ = [
    "ClassificationTask",
    "LabelledBatches",
    "check_labels",
    "doubts",
    "found_labels",
    "in_order",
    "label_numbers",
    "prepare_classification",
]

FEW = 10  # so many labels are nothing strange, however few the examples


def found_labels(corpus: Corpus) -> Labels:
    """Return the sorted labels of the training text: numbers by value, else as texts."""
    texts, names = corpus.train.sides()
    found = set(names)
    if len(found) < 2:
        raise DataError(
            f'every training example has the label "{found.pop()}": there is nothing to tell apart. '
            "Give examples of at least two labels."
        )
    two = any(BETWEEN in text for text in texts)
    return Labels(tuple(sorted(found, key=in_order(found))), 2 if two else 1)


def in_order(labels: Iterable[str]) -> Callable[[str], Any]:
    """Return the sort key of labels."""
    try:
        values = {label: float(label) for label in labels}
    except ValueError:
        return str
    return lambda label: (values[label], label)


def check_labels(pairs: Sequence[Pair], names: Sequence[str], where: str) -> None:
    """Raise `DataError` for labels that the training text does not have, with the first line of each."""
    known, unknown = set(names), dict[str, int]()
    for pair in pairs:
        if pair.target not in known:
            unknown.setdefault(pair.target, pair.line)
    if unknown:
        raise DataError(unseen([f'"{name}" (line {unknown[name]:,})' for name in sorted(unknown)], names, where))


def label_numbers(labels: Iterable[str], names: Sequence[str], where: str) -> NDArray[np.int64]:
    """Return the class of each label (N,).

    Raises:
        DataError: the training text does not have some labels; the message names them.
    """
    place = {name: number for number, name in enumerate(names)}
    given = list(labels)
    unknown = sorted(set(given) - place.keys())
    if unknown:
        raise DataError(unseen([f'"{name}"' for name in unknown], names, where))
    return np.array([place[label] for label in given], np.int64)


def unseen(unknown: Sequence[str], names: Sequence[str], where: str) -> str:
    """Return the error for labels that the training text does not have."""
    shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
    known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return (
        f"{where} has labels that training has not seen: {shown}. It has seen: {known}. "
        "Mend those labels, or train on examples of them too."
    )


def doubts(config: Config, corpus: Corpus, names: Sequence[str]) -> Iterator[str]:
    """Return warnings about the text: probable mistakes that do not prevent training."""
    count = len(corpus.train)
    if len(names) > max(FEW, count // 2):
        yield (
            f"{len(names):,} labels in {count:,} examples: hardly any comes twice. A line is label<TAB>text; are "
            "the columns the other way round?"
        )
    found = {pair.target for pair in corpus.valid}
    if len(found) == 1:
        cure = "Shuffle the lines of train" if isinstance(config.data.valid, float) else "Take others"
        yield (
            f'all {len(corpus.valid):,} examples of data.valid have the label "{found.pop()}": whoever always says '
            f"that is always right. {cure}."
        )


UNBALANCED = 10  # the largest class over the smallest, from where on a warning is due


def prepare_classification(
    config: Config, run: RunDirectory, corpus: Corpus, listener: Listener
) -> ClassificationTask:
    """Prepare labels, vocabulary and token ids of a run; stored ones are reused.

    Raises:
        DataError: the training text has only one label, or the validation or test text has unknown ones.
    """
    labels = Labels.of_run(run) if run.exists else found_labels(corpus)
    for doubt in doubts(config, corpus, labels.names):
        listener.message(f"warning: {doubt}")
    check_labels(corpus.valid, labels.names, "data.valid")
    if config.data.test is not None and config.data.drop_overlap:  # it has been read before, as it is held out
        check_labels(held_out(config, "test"), labels.names, "data.test")
    tokenizers = prepare_single(config, run, lambda most: parts_of(corpus.train, most), listener)
    tokenizer = tokenizers.source

    def numbers(texts: Sequence[str]) -> list[list[int]]:
        return [[number] for number in label_numbers(texts, labels.names, "data.train").tolist()]

    def ids(texts: Sequence[str]) -> list[list[int]]:
        return encode_texts(tokenizer.encode, texts, tokenizer.marks_between)

    store = tokenise(config, run, corpus, tokenizers, (ids, numbers), max_length=None)
    kind = ClassificationTask(config, corpus, tokenizers, labels, store)
    kind.tell(listener)
    return kind


def parts_of(texts: TextStore, most: int | None) -> list[str]:
    """Return the texts to train a tokenizer on, the two texts of an example separately: at most `most`."""
    return [part for joined in texts.sides(most)[0] for part in split_texts(joined)]


class ClassificationTask(TrainingTask):
    """Classification (see `TrainingTask`)."""

    def __init__(
        self, config: Config, corpus: Corpus, tokenizers: TokenizerPair, labels: Labels, store: TokenStore
    ) -> None:
        super().__init__(config, corpus, tokenizers)
        self.labels = labels
        self.store = store

    @property
    def vocabulary(self) -> str:
        """Description of vocabulary size and classes."""
        return f"{self.tokenizers.source.size:,}, {len(self.labels.names):,} classes"

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels, in the order of the outputs."""
        return self.labels.names

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of training examples of each class (C,)."""
        labels = np.concatenate([self.store.target[row] for row in range(len(self.store))])
        return np.bincount(labels, minlength=len(self.labels.names))

    def tell(self, listener: Listener) -> None:
        """Report truncated texts and rare classes."""
        limit, longer = longest_text(self.config), self.store.source.lengths
        cut = int((longer > limit).sum())
        if cut:
            listener.message(f"{cut:,} of {len(longer):,} texts are longer than {limit:,} tokens: cut there")
        counts = self.counts
        most, fewest = int(counts.argmax()), int(counts.argmin())
        if counts[most] > UNBALANCED * counts[fewest]:
            names = self.labels.names
            listener.message(
                f'warning: unbalanced classes: {counts[most]:,} examples of "{names[most]}", {counts[fewest]:,} of '
                f'"{names[fewest]}". Accuracy says little then: look at macro F1, and try '
                'training.class_weights = "balanced".'
            )

    def begin(self, run: RunDirectory, environment: Mapping[str, Any]) -> None:
        """Write configuration, tokenizer and labels."""
        run.begin(self.config, self.tokenizers, environment, {LABELS: self.labels.to_json()})

    def model(self) -> TextClassifier:
        """Build a new model."""
        return TextClassifier(self.config.model, self.tokenizers.source.size, len(self.labels.names), pad=PAD)

    def objective(self, model: Transformer) -> Objective:
        """Return the objective: cross-entropy of the label."""
        assert isinstance(model, TextClassifier)
        training = self.config.training
        weights = None
        if training.class_weights == "balanced":
            counts = self.counts
            weights = torch.tensor(counts.sum() / (len(counts) * np.maximum(1, counts)), dtype=torch.float32)
        return ClassificationObjective(model, training.label_smoothing, weights)

    def updates(self, world: World) -> BatchSource:
        """Return batches of similar lengths."""
        maker = LabelledBatches(self.config, self.corpus.train, self.store, self.tokenizers.source)
        return CorpusUpdates(self.config, self.corpus.train, self.store, maker, world)

    def validation(self, model: Transformer, world: World) -> Callable[[int], ValidationReport]:
        """Return the validation: loss, accuracy and macro F1 of all held-out texts."""
        assert isinstance(model, TextClassifier)
        return ClassValidation(self.config, self.corpus.valid, self.tokenizers.source, self.labels, model, world)

    def card(self, progress: Progress) -> str:
        """Return the model card."""
        return classifier_card(self.config, self.tokenizers.source.size, self.labels.names, progress)


class LabelledBatches:
    """Makes batches of labelled texts (see `BatchMaker`)."""

    def __init__(self, config: Config, texts: TextStore, store: TokenStore, tokenizer: Tokenizer) -> None:
        self.texts = texts
        self.store = store
        self.tokenizer = tokenizer
        self.sampling = config.tokenizer.sampling > 0
        self.with_types = config.model.token_types > 1
        self.limit = longest_text(config)
        lengths = np.minimum(store.source.lengths, self.limit) + 2
        self.lengths = (lengths, lengths)

    def rows(self, pairs: NDArray[np.int64], rng: np.random.Generator) -> list[Example]:
        """Return the token ids of these texts (from the store, or a new random segmentation) and their labels."""
        ids: Sequence[Any] = [self.store.source[pair] for pair in pairs]
        if self.sampling:
            seed = int(rng.integers(2**31))
            texts = self.texts.text(0, self.store.rows[pairs])
            tokenizer = self.tokenizer
            ids = encode_texts(lambda parts: tokenizer.sample(parts, seed), texts, tokenizer.marks_between)
        return [
            Example(cut_text(row, self.limit, eos=EOS), int(self.store.target[pair][0]))
            for row, pair in zip(ids, pairs, strict=True)
        ]

    def batch(self, rows: Sequence[Example]) -> Examples:
        """Make a batch."""
        return make_examples(rows, pad=PAD, bos=BOS, eos=EOS, with_types=self.with_types)

    def blank(self) -> Examples:
        """Return a batch without labels."""
        return blank_examples(pad=PAD, bos=BOS, eos=EOS, with_types=self.with_types)


class ClassValidation:
    """Validates a classifier; with several processes, each takes a share, and all get the result."""

    def __init__(
        self,
        config: Config,
        pairs: Sequence[Pair],
        tokenizer: Tokenizer,
        labels: Labels,
        model: TextClassifier,
        world: World,
    ) -> None:
        self.model = model
        self.world = world
        limit = longest_text(config)
        rows = encode_texts(tokenizer.encode, [pair.source for pair in pairs], tokenizer.marks_between)
        self.rows = [cut_text(row, limit, eos=EOS) for row in rows]
        self.right = label_numbers((pair.target for pair in pairs), labels.names, "data.valid")

    def __call__(self, step: int) -> ValidationReport:
        """Validate the weights of a step."""
        share = self.world.share(range(len(self.rows)))
        right = self.right[list(share)]
        found = class_probabilities(self.model, [self.rows[place] for place in share])
        with np.errstate(divide="ignore"):
            nats = -np.log(found[np.arange(len(right)), right])
        classes = found.shape[1]
        counts = confusion_matrix(right, found.argmax(1), classes)
        total, *flat = self.world.total([float(nats.sum()), *counts.flatten().tolist()])
        confusion = np.array(flat).reshape(classes, classes).astype(np.int64)
        scores = {"accuracy": accuracy(confusion), "macro_f1": macro_f1(confusion)}
        loss = total / len(self.rows)
        return ValidationReport(step, loss, scores, False, None, attention_entropy=self.entropy())

    def entropy(self) -> dict[str, list[list[float]]]:
        """Return the attention entropy of each head, on a few texts."""
        device = next(self.model.parameters()).device
        readings = []
        for place in evenly(len(self.rows), LOOKED_INTO):
            ids, types = make_texts(
                [self.rows[place]], pad=PAD, bos=BOS, eos=EOS, with_types=self.model.config.token_types > 1
            )
            readings.append(watch_text(self.model, ids.to(device), None if types is None else types.to(device)))
        return mean_entropies(readings)
