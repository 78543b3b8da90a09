"""Score a translator or a classifier on a split or on files."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import with_overrides
from manyheads.config.schema import Config
from manyheads.data.lines import read_lines
from manyheads.data.locate import Split
from manyheads.errors import DataError, UsageError
from manyheads.evaluation import ClassScores, Scores, exact_match, score
from manyheads.runs.corpus import cleaning, read_split
from manyheads.runs.text_scores import MaskedEvaluation, TextEvaluation, evaluate_masked, evaluate_text
from manyheads.runs.training_tasks.classification import label_numbers
from manyheads.tasks.classification import Classifier
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import BOS, EOS
from manyheads.training.log import Listener, SilentListener
from manyheads.training.validation import corpus_nll

__all__ = ["ClassEvaluation", "Evaluation", "evaluate", "evaluate_labels", "texts", "with_text"]

NO_LISTENER = SilentListener()


@dataclass(frozen=True)
class Evaluation:
    """Scores of a translator on a text.

    Attributes:
        loss: nats per target token over the whole text, end symbols counted, without label smoothing.
        tokens: number of target tokens.
        scores: BLEU, chrF and TER with their signatures.
        exact: share of outputs equal to their reference, 0 to 1.
        outputs: translations, line by line.
        seconds: time of the search in seconds.
    """

    task: str
    loss: float
    tokens: int
    scores: Scores
    exact: float
    outputs: list[str]
    seconds: float

    @property
    def perplexity(self) -> float:
        """Perplexity, exp(loss)."""
        return math.exp(min(self.loss, 700))

    def to_json(self) -> dict[str, Any]:
        """Return the document of `evaluate --json`."""
        return {
            "task": self.task,
            "loss": self.loss,
            "perplexity": self.perplexity,
            "tokens": self.tokens,
            "bleu": self.scores.bleu,
            "chrf": self.scores.chrf,
            "ter": self.scores.ter,
            "signature": self.scores.signature,
            "exact": self.exact,
            "sentences": len(self.outputs),
            "seconds": self.seconds,
        }

    def lines(self) -> list[str]:
        """Return lines of text."""
        scores, count = self.scores, len(self.outputs)
        speed = count / max(self.seconds, 1e-9)
        return [
            f"BLEU {scores.bleu:.2f}   {scores.signature['bleu']}",
            f"chrF {scores.chrf:.2f}   {scores.signature['chrf']}",
            f"TER  {scores.ter:.2f}   {scores.signature['ter']}",
            f"perplexity {self.perplexity:.3f} over {self.tokens:,} target tokens; "
            f"{100 * self.exact:.1f} % of {count:,} sentences exact; {speed:.1f} sentences/s",
            *(f"warning: {warning}" for warning in scores.warnings),
        ]


def evaluate(
    run: Path,
    *,
    split: Split = "test",
    source: Path | None = None,
    reference: Path | None = None,
    overrides: Sequence[str] = (),
    listener: Listener = NO_LISTENER,
) -> Evaluation | ClassEvaluation | TextEvaluation | MaskedEvaluation:
    """Score a run on a split or a file: translations, labels, or the perplexity of a language model.

    Args:
        run: run directory.
        split: train, valid or test of the run's own data.
        source: file to use in place of a split.
        reference: file with its translations or labels, line by line.
        overrides: settings such as `search.beam_size=1` or `data.root=DIR`.
        listener: receives messages.

    Raises:
        RunError, DataError, ConfigError: see the message.
    """
    task = RunDirectory.existing(run).config().task
    if task == "classification":
        classifier = Classifier.load(run)
        classifier.config = with_overrides(classifier.config, overrides)
        sources, references = texts(classifier.config, split, source, reference)
        return evaluate_labels(classifier, sources, references, listener, str(reference or f"data.{split}"))
    if task in ("language-modeling", "masked-lm"):
        if reference is not None:
            raise UsageError("a language model foresees one text, and needs no reference. Give --source alone.")
        evaluate_plain = evaluate_text if task == "language-modeling" else evaluate_masked
        return evaluate_plain(run, split=split, source=source, overrides=overrides, listener=listener)
    translator = Translator.load(run)
    config = with_overrides(translator.config, overrides)
    translator = Translator(config, translator.tokenizers, translator.model)
    sources, references = texts(config, split, source, reference)
    return evaluate_texts(translator, sources, references, listener)


def evaluate_texts(
    translator: Translator, sources: list[str], references: list[str], listener: Listener
) -> Evaluation:
    """Translate and score texts in memory."""
    config, tokenizers = translator.config, translator.tokenizers
    listener.message(f"translating {len(sources):,} sentences, beam {config.search.beam_size}")
    start = time.perf_counter()
    outputs = [one.translation for one in translator.translate(sources)]
    seconds = time.perf_counter() - start
    nats, tokens = corpus_nll(
        translator.model,
        tokenizers.source.encode(sources),
        tokenizers.target.encode(references),
        bos=BOS,
        eos=EOS,
    )
    return Evaluation(
        task=config.task,
        loss=nats / tokens,
        tokens=tokens,
        scores=score(outputs, references, protocol=config.evaluation.protocol, language=config.data.target),
        exact=exact_match(outputs, references),
        outputs=outputs,
        seconds=seconds,
    )


def texts(config: Config, split: Split, source: Path | None, reference: Path | None) -> tuple[list[str], list[str]]:
    """Read sources and references of a split, or of two files with the same number of lines."""
    if (source is None) != (reference is None):
        raise UsageError("a source file and its reference file belong together. Give both, or neither.")
    if source is not None and reference is not None:
        pairs = list(zip_longest(read_lines(source), read_lines(reference)))
        sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        for path, lines in ((source, sources), (reference, references)):
            if None in lines:
                raise DataError(
                    f"{path} has {lines.index(None):,} lines, but the other file {len(pairs):,}. "
                    "The two files must belong together line by line."
                )
        return checked(config, sources, references, f"{source}")
    if split == "test" and config.data.test is None:
        raise UsageError("this run names no test set. Give --split valid, --set data.test=..., or two files.")
    found = list(read_split(config.data, split, config.task))
    return checked(config, [pair.source for pair in found], [pair.target for pair in found], f"data.{split}")


def checked(config: Config, sources: list[str], references: list[str], origin: str) -> tuple[list[str], list[str]]:
    """Check that there is text to score, and normalise the references as in training."""
    if not sources:
        raise DataError(f"{origin} holds no lines. There is nothing to score.")
    return sources, list(map(cleaning(config), references))


WIDEST = 12  # classes whose confusion is shown to people


@dataclass(frozen=True)
class ClassEvaluation:
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
        return sum(one.support for one in self.scores.classes)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `evaluate --json`."""
        return {
            "task": "classification",
            "loss": self.loss,
            **self.scores.to_json(),
            "examples": self.examples,
            "truncated": self.truncated,
            "seconds": self.seconds,
        }

    def lines(self) -> list[str]:
        """Return lines of text."""
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
        wide = len(classes) <= WIDEST
        names = [one.label for one in classes]
        rows = [
            ["label", "precision", "recall", "F1", "texts", *([f"-> {name}" for name in names] if wide else [])]
        ]
        for one, counts in zip(classes, self.scores.confusion, strict=True):
            figures = [f"{value:.2%}" for value in (one.precision, one.recall, one.f1)]
            given = [f"{count:,}" for count in counts] if wide else []
            rows.append([one.label, *figures, f"{one.support:,}", *given])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def evaluate_labels(
    classifier: Classifier,
    texts: Sequence[str],
    labels: Sequence[str],
    listener: Listener,
    where: str = "the text to score",
) -> ClassEvaluation:
    """Classify and score texts in memory; empty ones are left out.

    Args:
        classifier: classifier to score.
        texts: examples of one text, or two with a tab between them.
        labels: true labels.
        listener: receives messages.
        where: name of the texts in messages.

    Raises:
        DataError: no text is left, or a label is unknown to the classifier.
    """
    places = with_text(texts, listener)
    right = label_numbers((labels[place] for place in places), classifier.labels.names, where)
    if classifier.warning:
        listener.message(f"warning: {classifier.warning}")
    listener.message(f"classifying {len(places):,} texts")
    start = time.perf_counter()
    found = classifier.classify(texts)
    seconds = time.perf_counter() - start
    probabilities = np.array([list(found[place].probabilities.values()) for place in places])
    said = probabilities[np.arange(len(right)), right]
    return ClassEvaluation(
        loss=math.fsum(-math.log(max(value, 1e-300)) for value in said) / len(said),
        scores=ClassScores.of(probabilities, right, classifier.labels.names),
        outputs=[one.label for one in found],
        truncated=sum(one.truncated for one in found),
        seconds=seconds,
    )


def with_text(texts: Sequence[str], listener: Listener) -> list[int]:
    """Return the indices of the texts that are not empty, and report the number of empty ones.

    Raises:
        DataError: all texts are empty.
    """
    places = [place for place, text in enumerate(texts) if text.strip()]
    if not places:
        raise DataError("0 texts: there is nothing to score. Give at least one.")
    if len(places) < len(texts):
        listener.message(f"{len(texts) - len(places):,} of {len(texts):,} lines without text: left out")
    return places
