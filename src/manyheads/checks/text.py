"""Examine the text of a configuration, read once and counted while it passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from bitext.pairs import Pair
from bitext.report import DataReport, report
from manyheads.checks.catalogue import config_finding
from manyheads.checks.check import merge_findings
from manyheads.checks.evidence import QuotedLines, Share, list_first
from manyheads.checks.languages import language_classifier
from manyheads.checks.lines import DAMAGED, LEAST_LINES, LineCounts, NearCopies, split_findings
from manyheads.checks.pairs import PairCounts, language_findings
from manyheads.config.schema import Config
from manyheads.data.reading import READINGS
from transformer_doctor.report import Diagnosis, Finding, make_report

_UNBALANCED = 10  # times
_LONG_LINE = 40  # characters from which on a repeated line is no coincidence
_REPEATED = 0.1  # share of such lines of the validation text
# Each check of a text, and the findings that contradict it.
_LINES = {
    "no letters are damaged": ("encoding-damaged", "html-entities", "typographic-marks"),
    "the text is plain, not cut into tokens": ("subword-pieces", "tokenised-text"),
    "held-out text does not stand in train": ("held-out-in-train", "near-copies-in-train"),
}
_PAIRS = {
    "each side is in its own language": ("languages-swapped", "languages-mixed"),
    "line i is the translation of line i": ("misaligned",),
    "targets are not copies of their sources": ("source-copied",),
    **_LINES,
    "few lines are empty, doubled, or of odd lengths": ("empty-lines", "much-duplicated", "odd-lengths"),
}
_LABELS = {
    "labels do not contradict each other, and all are in the validation set": (
        "labels-contradict", "labels-missing",
    ),
    **_LINES,
    "few lines are empty or doubled": ("empty-lines", "much-duplicated"),
}  # fmt: skip


def examine_text(
    config: Config, splits: Mapping[str, Iterable[Pair]], normalize: Callable[[str], str]
) -> Diagnosis:
    """Count the text of a configuration, and find problems in it.

    Args:
        config: configuration of the training.
        splits: pairs before cleaning, by the name of the split, train first; train is read once, from start to end.
        normalize: function that cleans a text, as in training.
    """
    findings: list[Finding] = []
    if config.spec.reads_pairs:
        classify = language_classifier(config.data.source, config.data.target)
        pairs = {name: PairCounts(classify) for name in splits}
        figures, near_copies = _count_splits(config, splits, pairs, normalize)
        findings += [*_count_findings(figures, config), *language_findings(pairs)]
        for name, counts in pairs.items():
            findings += counts.findings(name)
            if name in near_copies.pairs:
                findings += near_copies.findings(name, counts.pairs)
        return _diagnosis(_facts(figures, config), findings, _PAIRS, figures)
    if config.spec.reads_labels:
        labels = {name: _LabelCounts() for name in splits}
        figures, near_copies = _count_splits(config, splits, labels, normalize)
        findings += [*_count_findings(figures, config), *_label_findings(labels)]
        for name, texts in near_copies.pairs.items():
            findings += near_copies.findings(name, len(texts))
        classes = labels["train"].classes
        named = [f'{count:,} of "{label}"' for label, count in classes.most_common()]
        described = f"{len(classes)}: {list_first(named, 5)}"
        return _diagnosis(_facts(figures, config) | {"labels": described}, findings, _LABELS, figures)
    return _examine_lines(splits)


def _diagnosis(
    facts: Mapping[str, str],
    findings: Iterable[Finding],
    checks: Mapping[str, Sequence[str]],
    figures: DataReport | None = None,
) -> Diagnosis:
    """Return the diagnosis of a text, for people and as JSON; a finding about several splits is one."""
    check_of = {name: check for check, names in checks.items() for name in names}
    merged = [replace(finding, check=check_of.get(finding.name, "")) for finding in merge_findings(findings)]
    report = make_report(merged, list(checks))
    return Diagnosis(facts, report, figures.to_json() if figures else {}, figures.lines() if figures else ())


def _count_splits(
    config: Config,
    splits: Mapping[str, Iterable[Pair]],
    counts: Mapping[str, PairCounts] | Mapping[str, _LabelCounts],
    normalize: Callable[[str], str],
) -> tuple[DataReport, NearCopies]:
    """Read and count all splits; return the report on the data, and near copies of held-out splits."""
    held_out = {name: list(pairs) for name, pairs in splits.items() if name != "train"}
    near_copies = NearCopies(held_out)
    watched = {"train": _watch(splits["train"], [near_copies, counts["train"]])}
    watched |= {name: _watch(pairs, [counts[name]]) for name, pairs in held_out.items()}
    data = config.data
    languages = (data.source, data.target) if config.spec.reads_pairs else ("text", "label")
    return report(languages, watched, normalize, READINGS[config.spec.reads].rules(data)), near_copies


def _watch(pairs: Iterable[Pair], observers: Sequence[PairCounts | _LabelCounts | NearCopies]) -> Iterator[Pair]:
    for pair in pairs:
        for observer in observers:
            observer.add(pair)
        yield pair


def _count_findings(figures: DataReport, config: Config) -> Iterator[Finding]:
    for name, split in figures.splits.items():
        yield from split_findings(name, split, config)


def _facts(figures: DataReport, config: Config) -> dict[str, str]:
    """Return the amount of text in each split, for people."""
    reading, train = READINGS[config.spec.reads], figures.splits["train"]
    others = ", ".join(f"{name} {split.read:,}" for name, split in figures.splits.items() if name != "train")
    used = train.filtered.describe(reading.noun, reading.other) if train.filtered else f"{train.read:,}"
    more = (
        {"more": f"{len(config.data.more)} further corpora (data.more) are not examined"}
        if config.data.more
        else {}
    )
    return {"text": f"train {used}; {others}"} | more


class _LabelCounts:
    """Counts of the texts of a split and their labels.

    Attributes:
        classes: number of texts of each label.
        conflicts: texts that came before with another label.
    """

    def __init__(self) -> None:
        self.text = LineCounts()
        self.classes: Counter[str] = Counter()
        self.conflicts = QuotedLines()
        self.labels: dict[int, str] = {}  # labels by the hash of a text

    def add(self, pair: Pair) -> None:
        self.text.add(pair.source, pair.line)
        self.classes[pair.target] += 1
        if self.labels.setdefault(hash(pair.source.strip()), pair.target) != pair.target:
            self.conflicts.add(pair.line, f"{pair.target}: {pair.source}")


def _label_findings(splits: Mapping[str, _LabelCounts]) -> Iterator[Finding]:
    """Yield findings about labels that contradict each other, are rare, or are missing from a split."""
    for name, counts in splits.items():
        yield from counts.text.findings(name)
        conflicts = Share(counts.conflicts.count, counts.text.lines)
        if counts.conflicts.count >= LEAST_LINES and conflicts > DAMAGED:
            evidence = f"{name}: {conflicts} texts came before with another label{counts.conflicts}"
            yield config_finding("labels-contradict", evidence)
    train, valid = splits["train"], splits.get("valid")
    (most, largest), *_, (fewest, smallest) = train.classes.most_common()
    if largest > _UNBALANCED * smallest:
        evidence = f'train: {largest:,} texts of "{most}", {smallest:,} of "{fewest}"'
        yield config_finding("labels-unbalanced", evidence)
    missing = sorted(train.classes.keys() - valid.classes.keys()) if valid else []
    if missing:
        named = list_first([f'"{name}"' for name in missing], 5)
        yield config_finding("labels-missing", f"valid: no text of {named}")


def _examine_lines(splits: Mapping[str, Iterable[Pair]]) -> Diagnosis:
    findings: list[Finding] = []
    train_lines: set[int] = set()  # hashes
    sizes = []
    for name, pairs in splits.items():
        counts, repeated, long_lines = LineCounts(), QuotedLines(), 0
        for pair in pairs:
            counts.add(pair.target, pair.line)
            if len(pair.target) < _LONG_LINE:
                continue
            long_lines += 1
            key = hash(pair.target.strip())
            if name == "train":
                train_lines.add(key)
            elif key in train_lines:
                repeated.add(pair.line, pair.target)
        findings += counts.findings(name)
        part = Share(repeated.count, long_lines)
        if part > _REPEATED:
            evidence = f"{name}: {part} of its longer lines stand in train{repeated}"
            findings.append(config_finding("held-out-in-train", evidence))
        sizes.append(f"{name} {counts.lines:,} lines")
    return _diagnosis({"text": ", ".join(sizes)}, findings, _LINES)
