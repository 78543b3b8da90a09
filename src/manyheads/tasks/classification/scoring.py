"""Score classifiers: labels of a text, validation during training, evaluation of a trained classifier."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bitext.letters import has_text
from bitext.pairs import Pair
from manyheads.config.schema import Config
from manyheads.data.sampler import evenly
from manyheads.data.training_text import Corpus
from manyheads.decoding.text_batches import class_probabilities
from manyheads.errors import DataError
from manyheads.evaluation import ClassScores, accuracy, confusion_matrix, macro_f1
from manyheads.evaluation.advice import with_settings
from manyheads.evaluation.verdicts import judge_classes
from manyheads.inference.classifier import Classification, Classifier
from manyheads.inference.labels import Labels
from manyheads.inference.texts import encode_texts, longest_text  # fmt: skip
from manyheads.model.encoder_only import TextClassifier
from manyheads.reports import Advance, Listener, ValidationReport
from manyheads.results import Result
from manyheads.tensors.capture import ENTROPY_TEXTS, capture, mean_entropies
from manyheads.tensors.examples import make_texts
from manyheads.text.joined_texts import BETWEEN, cut_text
from manyheads.text.tokenizer import BOS, EOS, PAD, Tokenizer
from manyheads.training.distributed import World
from manyheads.training.interruption import UNWATCHED, Watch
from manyheads.training.scored_text import report_cut

_UNBALANCED = 10  # examples of the largest class over those of the smallest, above which a warning is given
_FEW_LABELS = 10  # number of labels that never causes a warning, however few the examples
_TEXTS_PER_REPORT = 512  # texts classified between two reports of progress
_WIDEST = 12  # classes whose confusion matrix is printed


def labels_of(corpus: Corpus) -> Labels:
    """Return the sorted labels of the training text: numbers by value, else as texts.

    Raises:
        DataError: there is only one label.
    """
    texts, names = corpus.train.sides()
    distinct = set(names)
    if len(distinct) < 2:
        raise DataError(
            f'every training example has the label "{distinct.pop()}": there is nothing to tell apart. '
            "Give examples of at least two labels."
        )
    paired = any(BETWEEN in text for text in texts)
    return Labels(tuple(sorted(distinct, key=_in_order(distinct))), 2 if paired else 1)


def _in_order(labels: Iterable[str]) -> Callable[[str], Any]:
    """Return the sort key of labels: their values if all are numbers, else the labels as text."""
    try:
        values = {label: float(label) for label in labels}
    except ValueError:
        return str
    return lambda label: (values[label], label)


def label_numbers(
    labels: Iterable[str], names: Sequence[str], where: str, lines: Sequence[int] = ()
) -> NDArray[np.int64]:
    """Return the class of each label (N,): its index in `names`, the labels of the training text.

    Raises:
        DataError: the training text does not have some labels; the message names them and the examples (`where`),
            with the first line of each label if `lines` are given.
    """
    number_of = {name: number for number, name in enumerate(names)}
    labels = list(labels)
    unknown = sorted(set(labels) - number_of.keys())
    if unknown:
        first_lines = [f" (line {lines[labels.index(name)]:,})" if lines else "" for name in unknown[:5]]
        shown = ", ".join(f'"{name}"{line}' for name, line in zip(unknown, first_lines, strict=False))
        known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise DataError(
            f"{where} has labels that training has not seen: {shown}{', ...' if len(unknown) > 5 else ''}. "
            f"It has seen: {known}. Mend those labels, or train on examples of them too."
        )
    return np.array([number_of[label] for label in labels], np.int64)


def check_labels(pairs: Sequence[Pair], names: Sequence[str], where: str) -> None:
    """Raise `DataError` for labels that the training text does not have, with the first line of each."""
    label_numbers([pair.target for pair in pairs], names, where, [pair.line for pair in pairs])


def warnings_of(config: Config, corpus: Corpus, names: Sequence[str]) -> Iterator[str]:
    """Yield warnings about the text: probable mistakes that do not prevent training."""
    count = len(corpus.train)
    if len(names) > max(_FEW_LABELS, count // 2):
        yield (
            f"{len(names):,} labels in {count:,} examples: hardly any comes twice. A line is label<TAB>text; are "
            "the columns the other way round?"
        )
    valid_labels = {pair.target for pair in corpus.valid}
    if len(valid_labels) == 1:
        cure = "Shuffle the lines of train" if isinstance(config.data.valid, float) else "Take others"
        yield (
            f'all {len(corpus.valid):,} examples of data.valid have the label "{valid_labels.pop()}": a '
            f"classifier that always predicts it is always right. {cure}."
        )


def class_weights(config: Config, counts: NDArray[np.int64]) -> torch.Tensor | None:
    """Return the weight of each class (C,) float32, from the number of its examples; None if all weigh the same."""
    if config.training.class_weights == "none":
        return None
    return torch.tensor(counts.sum() / (len(counts) * np.maximum(1, counts)), dtype=torch.float32)


def report_classes(
    config: Config,
    lengths: NDArray[np.int64],
    counts: NDArray[np.int64],
    names: Sequence[str],
    listener: Listener,
) -> None:
    """Report truncated texts, from their lengths in tokens (N,), and rare classes, from their counts (C,)."""
    report_cut(lengths.tolist(), longest_text(config), "data.train", listener)
    most, fewest = int(counts.argmax()), int(counts.argmin())
    if counts[most] > _UNBALANCED * counts[fewest]:
        listener.message(
            f'warning: unbalanced classes: {counts[most]:,} examples of "{names[most]}", {counts[fewest]:,} of '
            f'"{names[fewest]}". Accuracy says little then: '
            f"{with_settings('look at macro F1', 'labels-unbalanced', config)}."
        )


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
        watch: Watch = UNWATCHED,
    ) -> None:
        self.model = model
        self.world = world
        self.watch = watch
        limit = longest_text(config)
        rows = encode_texts(tokenizer.encode, [pair.source for pair in pairs], tokenizer.marks_between)
        self.rows = [cut_text(row, limit, eos=EOS) for row in rows]
        report_cut(map(len, rows), limit, "data.valid", watch.listener)
        self.targets = label_numbers((pair.target for pair in pairs), labels.names, "data.valid")

    def __call__(self, step: int) -> ValidationReport:
        """Validate the weights of a step."""
        share = self.world.share(range(len(self.rows)))
        true_classes = self.targets[list(share)]
        with self.watch.phase("validating", len(share), "texts") as advance:
            probabilities = class_probabilities(self.model, [self.rows[row] for row in share], advance)
        with np.errstate(divide="ignore"):
            nats = -np.log(probabilities[np.arange(len(true_classes)), true_classes])
        classes = probabilities.shape[1]
        counts = confusion_matrix(true_classes, probabilities.argmax(1), classes)
        total, *flat = self.world.total([float(nats.sum()), *counts.flatten().tolist()])
        confusion = np.array(flat).reshape(classes, classes).astype(np.int64)
        scores = {"accuracy": accuracy(confusion), "macro_f1": macro_f1(confusion)}
        loss = total / len(self.rows)
        return ValidationReport(step, loss, scores, False, None, attention_entropy=self.entropy())

    def entropy(self) -> dict[str, list[list[float]]]:
        """Return the attention entropy of each head, on a few texts."""
        device = next(self.model.parameters()).device
        with_types = self.model.config.token_types > 1
        readings = []
        for row in evenly(len(self.rows), ENTROPY_TEXTS):
            ids, types = make_texts([self.rows[row]], pad=PAD, bos=BOS, eos=EOS, with_types=with_types)
            readings.append(capture(self.model, ids.to(device), None if types is None else types.to(device)))
        return mean_entropies(readings)


@dataclass(frozen=True)
class ClassEvaluation(Result):
    """Scores of a classifier on texts.

    Attributes:
        loss: nats per text, without label smoothing.
        scores: accuracy, F1 and others, 0 to 1.
        outputs: predicted labels, text by text; "" for an empty text, which is not scored.
        truncated: number of texts longer than the model takes.
        seconds: time of the computation in seconds.
    """

    loss: float
    scores: ClassScores
    outputs: list[str]
    truncated: int
    seconds: float

    @property
    def examples(self) -> int:
        """Number of scored texts."""
        return sum(score.support for score in self.scores.classes)

    def figures(self) -> dict[str, Any]:
        """Return the scores, and the size of the text."""
        scores = {"task": "classification", "loss": self.loss, **vars(self.scores)}
        return {**scores, "examples": self.examples, "truncated": self.truncated, "seconds": self.seconds}

    def verdict(self) -> list[str]:
        """Return the verdict on the scores."""
        return list(judge_classes(self.scores))

    def report(self) -> list[str]:
        """Return the scores, a table of the classes, and the size of the text."""
        scores, speed = self.scores, len(self.outputs) / max(self.seconds, 1e-9)
        cut = f"; {self.truncated:,} texts cut at data.max_length" if self.truncated else ""
        return [
            f"accuracy {scores.accuracy:.2%}   macro F1 {scores.macro_f1:.2%}   loss {self.loss:.3f}   "
            f"calibration error {scores.calibration_error:.2%}",
            *self.table(),
            f"{self.examples:,} texts, {speed:,.0f} a second{cut}",
        ]

    def table(self) -> list[str]:
        """Return a table of the classes with scores and predicted labels."""
        classes = self.scores.classes
        wide = len(classes) <= _WIDEST
        predicted = [f"-> {score.label}" for score in classes] if wide else []
        rows = [["label", "precision", "recall", "F1", "texts", *predicted]]
        for score, counts in zip(classes, self.scores.confusion, strict=True):
            figures = [f"{value:.2%}" for value in (score.precision, score.recall, score.f1)]
            cells = [f"{count:,}" for count in counts] if wide else []
            rows.append([score.label, *figures, f"{score.support:,}", *cells])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def evaluate_labels(
    classifier: Classifier,
    texts: Sequence[str],
    labels: Sequence[str],
    listener: Listener,
    where: str = "the text to score",
) -> ClassEvaluation:
    """Classify and score texts in memory (or pairs of texts with a tab between them); empty ones are left out.

    `where` is the name of the texts in messages.
    """
    filled = with_text(texts, listener)
    true_classes = label_numbers((labels[index] for index in filled), classifier.labels.names, where)
    if classifier.warning:
        listener.message(f"warning: {classifier.warning}")
    listener.message(f"classifying {len(filled):,} texts")
    start = time.perf_counter()
    with listener.phase("classifying", len(texts), "texts") as advance:
        results = classify_in_groups(classifier, texts, advance)
    seconds = time.perf_counter() - start
    probabilities = np.array([list(results[index].probabilities.values()) for index in filled])
    true_probabilities = probabilities[np.arange(len(true_classes)), true_classes]
    return ClassEvaluation(
        loss=math.fsum(-math.log(max(value, 1e-300)) for value in true_probabilities) / len(true_probabilities),
        scores=ClassScores.of(probabilities, true_classes, classifier.labels.names),
        outputs=[result.label for result in results],
        truncated=sum(result.truncated for result in results),
        seconds=seconds,
    )


def classify_in_groups(classifier: Classifier, texts: Sequence[str], advance: Advance) -> list[Classification]:
    """Classify texts, and report the number of finished texts after each group."""
    results: list[Classification] = []
    for first in range(0, len(texts), _TEXTS_PER_REPORT):
        group = texts[first : first + _TEXTS_PER_REPORT]
        results += classifier.classify(group)
        advance(len(group))
    return results


def with_text(texts: Sequence[str], listener: Listener) -> list[int]:
    """Return the indices of the texts that are not empty, and report the number of empty ones.

    Raises:
        DataError: all texts are empty.
    """
    filled = [index for index, text in enumerate(texts) if has_text(text)]
    if not filled:
        raise DataError("0 texts: there is nothing to score. Give at least one.")
    if len(filled) < len(texts):
        listener.message(f"{len(texts) - len(filled):,} of {len(texts):,} lines without text: left out")
    return filled
