"""Score two runs of one task on the same text, and test whether the difference is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import with_overrides
from manyheads.config.schema import Config
from manyheads.data.locate import Split
from manyheads.errors import UsageError
from manyheads.evaluation import BootstrapResult, paired_bootstrap, paired_bootstrap_of_labels
from manyheads.runs.classification import label_numbers, with_text
from manyheads.runs.evaluate import texts
from manyheads.tasks.classification import Classifier
from manyheads.tasks.translation import Translator
from manyheads.training.log import NO_LISTENER, Listener

__all__ = ["Comparison", "compare"]

NAMES = {"bleu": "BLEU", "chrf": "chrF", "accuracy": "accuracy", "macro_f1": "macro F1"}


@dataclass(frozen=True)
class Comparison:
    """Scores of two runs on the same text, with the significance of the difference.

    Attributes:
        run, other: run directories.
        results: paired bootstrap of each metric, `run` against `other`.
    """

    run: Path
    other: Path
    results: tuple[BootstrapResult, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values; results by metric."""
        results = {result.metric: vars(result) for result in self.results}
        return {"run": str(self.run), "other": str(self.other), **results}

    def lines(self) -> list[str]:
        """Return lines of text."""
        return [f"{self.run} against {self.other}", *map(describe, self.results)]


def describe(result: BootstrapResult) -> str:
    """Describe one metric of a comparison."""
    low, high = result.interval
    verdict = "significant" if result.p_value < 0.05 else "not significant"
    return (
        f"{NAMES[result.metric]} {result.score:.2f} against {result.baseline:.2f}: {result.difference:+.2f} "
        f"[{low:+.2f}, {high:+.2f}], p = {result.p_value:.3f}, {verdict} "
        f"(paired bootstrap, {result.samples} samples)"
    )


def compare(
    run: Path,
    other: Path,
    *,
    split: Split = "test",
    source: Path | None = None,
    reference: Path | None = None,
    overrides: Sequence[str] = (),
    listener: Listener = NO_LISTENER,
) -> Comparison:
    """Evaluate two runs on the same text and test the difference by paired bootstrap (Koehn 2004).

    The text is that of `run`; translations are scored with the defaults of sacreBLEU, whatever the protocols of the
    runs.

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
    sources, references = texts(config, split, source, reference)
    compare_pair = compare_translators if tasks[0] == "translation" else compare_classifiers
    return Comparison(run, other, compare_pair(config, (run, other), sources, references, overrides, listener))


def compare_translators(
    config: Config,
    runs: tuple[Path, Path],
    sources: list[str],
    references: list[str],
    overrides: Sequence[str],
    listener: Listener,
) -> tuple[BootstrapResult, ...]:
    """Compare translators by BLEU and chrF."""
    outputs = []
    for path in runs:
        listener.message(f"translating {len(sources):,} sentences with {path}")
        loaded = Translator.load(path)
        translator = Translator(with_overrides(loaded.config, overrides), loaded.tokenizers, loaded.model)
        outputs.append([result.translation for result in translator.translate(sources)])
    ours, theirs = outputs
    language = config.data.target
    bleu = paired_bootstrap(ours, theirs, references, metric="bleu", language=language)
    chrf = paired_bootstrap(ours, theirs, references, metric="chrf", language=language)
    return bleu, chrf


def compare_classifiers(
    config: Config,
    runs: tuple[Path, Path],
    sources: list[str],
    references: list[str],
    overrides: Sequence[str],
    listener: Listener,
) -> tuple[BootstrapResult, ...]:
    """Compare classifiers by accuracy and macro F1; a label unknown to one of them counts as wrong for it."""
    filled = with_text(sources, listener)
    predicted, names = [], dict[str, None]()
    for path in runs:
        listener.message(f"classifying {len(filled):,} texts with {path}")
        classifier = Classifier.load(path)
        classifier.config = with_overrides(classifier.config, overrides)
        names |= dict.fromkeys(classifier.labels.names)
        predicted.append([result.label for result in classifier.classify([sources[index] for index in filled])])
    labels = list(names)
    right = label_numbers((references[index] for index in filled), labels, "the text to score")
    ours, theirs = (label_numbers(names, labels, "the output") for names in predicted)
    accuracy = paired_bootstrap_of_labels(ours, theirs, right, len(labels), metric="accuracy")
    macro_f1 = paired_bootstrap_of_labels(ours, theirs, right, len(labels), metric="macro_f1")
    return accuracy, macro_f1
