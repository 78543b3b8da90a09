"""Score two runs of one task on the same text, and test whether the difference is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import with_overrides
from manyheads.data.locate import Split
from manyheads.errors import UsageError
from manyheads.evaluation import BootstrapResult, paired_bootstrap, paired_bootstrap_of_labels
from manyheads.evaluation.verdicts import METRIC_NAMES, judge_comparison, judge_empty, verdict_lines
from manyheads.tasks.classification.classifier import Classifier
from manyheads.tasks.classification.scoring import classify_in_groups, label_numbers, with_text
from manyheads.tasks.scored_text import ScoredText
from manyheads.tasks.translation.grouped import translate_in_groups
from manyheads.tasks.translation.translator import Translator
from manyheads.training.log import NO_LISTENER, Listener


@dataclass(frozen=True)
class Comparison:
    """Scores of two runs on the same text, with the significance of the difference.

    Attributes:
        run, other: run directories.
        results: paired bootstrap of each metric, `run` against `other`.
        text: name and size of the text, and for translators the search of each run.
        empty: sentences on lines without text.
    """

    run: Path
    other: Path
    results: tuple[BootstrapResult, ...]
    text: str
    empty: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values; results by metric."""
        results = {result.metric: vars(result) for result in self.results}
        return {
            "run": str(self.run),
            "other": str(self.other),
            "text": self.text,
            **results,
            "verdict": ". ".join(self.verdict()),
        }

    def verdict(self) -> list[str]:
        """Return which run is better, or the number of lines that would decide it."""
        return [*self.empty, *judge_comparison(str(self.run), str(self.other), self.results)]

    def lines(self) -> list[str]:
        """Return lines of text."""
        results = map(_describe, self.results)
        return [f"{self.run} against {self.other}", self.text, *results, *verdict_lines(self.verdict())]


def _describe(result: BootstrapResult) -> str:
    low, high = result.interval
    significant = "significant" if result.significant else "not significant"
    return (
        f"{METRIC_NAMES[result.metric]} {result.score:.2f} against {result.baseline:.2f}: {result.difference:+.2f} "
        f"[{low:+.2f}, {high:+.2f}], p = {result.p_value:.3f}, {significant} "
        f"(paired bootstrap, {result.samples} samples{f'; {result.signature}' if result.signature else ''})"
    )


def compare(
    run: Path,
    other: Path,
    *,
    split: Split = "test",
    source: Path | None = None,
    reference: Path | None = None,
    overrides: Sequence[str] = (),
    device: str = "auto",
    listener: Listener = NO_LISTENER,
) -> Comparison:
    """Evaluate two runs on the same text and test the difference by paired bootstrap (Koehn 2004).

    The text is the text of `run`. Translations are scored with the defaults of sacreBLEU; `evaluation.protocol` is
    ignored.

    Raises:
        RunError, DataError, ConfigError: see the message.
        UsageError: the runs have different tasks, or a task that cannot be compared.
    """
    tasks = [RunDirectory.existing(path).config().task for path in (run, other)]
    if tasks[0] != tasks[1] or tasks[0] not in ("translation", "classification"):
        raise UsageError(
            f"{run} is a run of {tasks[0]}, {other} of {tasks[1]}. Compare two translators or two classifiers."
        )
    config = with_overrides(RunDirectory.existing(run).config(), overrides)
    sources, references = ScoredText(split, source, reference).pairs(config)
    name = str(source or f"data.{split}")
    if tasks[0] == "translation":
        translators = [_load_translator(path, overrides, device) for path in (run, other)]
        outputs = [_translate(translator, sources, listener) for translator in translators]
        methods = " against ".join(dict.fromkeys(translator.config.search.method for translator in translators))
        text = f"{name}: {len(sources):,} sentences, {methods}"
        empty = tuple(judge_empty({"sources": sources, "references": references}))
        return Comparison(run, other, _compare_translations(outputs, references, config.data.target), text, empty)
    filled = with_text(sources, listener)
    sources, references = [sources[index] for index in filled], [references[index] for index in filled]
    labels = [_classify(path, sources, overrides, device, listener) for path in (run, other)]
    return Comparison(run, other, _compare_labels(labels, references), f"{name}: {len(sources):,} texts")


def _load_translator(run: Path, overrides: Sequence[str], device: str) -> Translator:
    loaded = Translator.load(run, device=device)
    return Translator(with_overrides(loaded.config, overrides), loaded.tokenizers, loaded.model)


def _translate(translator: Translator, sources: Sequence[str], listener: Listener) -> list[str]:
    listener.message(f"translating {len(sources):,} sentences, {translator.config.search.method}")
    with listener.phase("translating", len(sources), "sentences") as advance:
        results = translate_in_groups(translator, sources, advance)
    return [result.translation for result in results]


def _compare_translations(
    outputs: Sequence[Sequence[str]], references: Sequence[str], language: str
) -> tuple[BootstrapResult, ...]:
    """Compare the translations of two runs by BLEU and chrF."""
    run_outputs, other_outputs = outputs
    bleu = paired_bootstrap(run_outputs, other_outputs, references, metric="bleu", language=language)
    chrf = paired_bootstrap(run_outputs, other_outputs, references, metric="chrf", language=language)
    return bleu, chrf


def _classify(
    path: Path, sources: Sequence[str], overrides: Sequence[str], device: str, listener: Listener
) -> tuple[list[str], tuple[str, ...]]:
    """Return the predicted labels of a run, and all labels that it knows."""
    listener.message(f"classifying {len(sources):,} texts with {path}")
    classifier = Classifier.load(path, device=device)
    classifier.config = with_overrides(classifier.config, overrides)
    with listener.phase("classifying", len(sources), "texts") as advance:
        results = classify_in_groups(classifier, sources, advance)
    return [result.label for result in results], classifier.labels.names


def _compare_labels(
    outputs: Sequence[tuple[Sequence[str], Sequence[str]]], references: Sequence[str]
) -> tuple[BootstrapResult, ...]:
    """Compare classifiers by accuracy and macro F1; a label unknown to one of them counts as wrong for it."""
    names = list(dict.fromkeys(name for _, known in outputs for name in known))
    true_labels = label_numbers(references, names, "the text to score")
    run_labels, other_labels = (label_numbers(labels, names, "the output") for labels, _ in outputs)
    accuracy = paired_bootstrap_of_labels(run_labels, other_labels, true_labels, len(names), metric="accuracy")
    macro_f1 = paired_bootstrap_of_labels(run_labels, other_labels, true_labels, len(names), metric="macro_f1")
    return accuracy, macro_f1
