"""The text of a configuration, read once and noted while it passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from manyheads.config.schema import Config
from manyheads.data.corpus import Pair
from manyheads.data.locate import Split
from manyheads.data.reading import READINGS
from manyheads.data.report import DataReport, report
from manyheads.doctor.before.languages import teller
from manyheads.doctor.before.tally import LabelTally, NearCopies, Noted, PairTally, TextTally
from manyheads.doctor.before.text import (
    damage_findings,
    label_findings,
    language_findings,
    near_findings,
    of,
    pair_findings,
    split_findings,
)
from manyheads.doctor.catalogue import config_finding
from manyheads.doctor.evidence import share, shown
from manyheads.doctor.report import Finding, Report, make_report
from manyheads.runs.corpus import cleaning, read_split

__all__ = ["examine_text"]

LONG_LINE = 40  # characters from which on a line that stands twice is no chance
REPEATED = 0.1  # share of such lines of the validation text


def examine_text(config: Config) -> tuple[Report, dict[str, str]]:
    """The findings on the text of a configuration, and the facts about it.

    Raises:
        DataError: text is missing or cannot be used.
    """
    match config.task:
        case "translation":
            return examine_pairs(config)
        case "classification":
            return examine_labelled(config)
        case _:
            return examine_plain(config)


def splits_of(config: Config) -> list[Split]:
    """Those that the configuration names."""
    names: list[Split] = ["train", "valid"]
    return [*names, "test"] if config.data.test is not None else names


def held_out_pairs(config: Config) -> dict[str, list[Pair]]:
    """All pairs of the splits that are not trained on."""
    return {name: list(read_split(config.data, name, config.task)) for name in splits_of(config) if name != "train"}


def through(pairs: Iterable[Pair], nears: Iterable[NearCopies]) -> Iterable[Pair]:
    """Pairs that some look at on their way."""
    return reduce(lambda passing, near: near.through(passing), nears, pairs)


def examine_pairs(config: Config) -> tuple[Report, dict[str, str]]:
    """Of a translator."""
    held_out = held_out_pairs(config)
    nears = {name: NearCopies(pairs) for name, pairs in held_out.items()}
    tell = teller(config.data.source, config.data.target)
    tallies: dict[str, PairTally] = {name: PairTally(tell) for name in splits_of(config)}
    train = through(read_split(config.data, "train", config.task), nears.values())
    splits = {"train": tallies["train"].through(train)} | {
        name: tallies[name].through(pairs) for name, pairs in held_out.items()
    }
    figures = report(config.data, splits, cleaning(config))
    findings = [*counts(figures, config), *language_findings(tallies)]
    for name, tally in tallies.items():
        findings += pair_findings(name, tally, nears[name].noted() if name in nears else None)
    asked = [
        "the languages are the right way round",
        "line i belongs to line i",
        "no copies of the source stand in the place of translations",
        "no letters are damaged",
        "held-out text does not stand in train",
        "few lines are empty, doubled, or of odd lengths",
    ]
    return make_report(findings, asked), facts(figures, config)


def examine_labelled(config: Config) -> tuple[Report, dict[str, str]]:
    """Of a classifier."""
    held_out = held_out_pairs(config)
    nears = {name: NearCopies(pairs) for name, pairs in held_out.items()}
    tallies: dict[str, LabelTally] = {name: LabelTally() for name in splits_of(config)}
    train = through(read_split(config.data, "train", config.task), nears.values())
    splits = {"train": tallies["train"].through(train)} | {
        name: tallies[name].through(pairs) for name, pairs in held_out.items()
    }
    reading = READINGS[config.task]
    figures = report(config.data, splits, cleaning(config), fault=reading.fault)
    findings = [*counts(figures, config), *label_findings(tallies)]
    for name, near in nears.items():
        findings += near_findings(name, near.noted(), len(near.pairs))
    asked = [
        "labels do not contradict each other, and all are in the validation set",
        "no letters are damaged",
        "held-out text does not stand in train",
        "few lines are empty or doubled",
    ]
    classes = tallies["train"].classes
    named = ", ".join(f'{count:,} of "{label}"' for label, count in classes.most_common(5))
    more = ", ..." if len(classes) > 5 else ""
    return make_report(findings, asked), facts(figures, config) | {"labels": f"{len(classes)}: {named}{more}"}


def counts(figures: DataReport, config: Config) -> Iterator[Finding]:
    """What the counts of each split show."""
    for name, split in figures.splits.items():
        yield from split_findings(name, split, config)


def facts(figures: DataReport, config: Config) -> dict[str, str]:
    """How much text there is."""
    reading, train = READINGS[config.task], figures.splits["train"]
    others = ", ".join(f"{name} {split.read:,}" for name, split in figures.splits.items() if name != "train")
    used = train.filtered.describe(reading.noun, reading.other) if train.filtered else f"{train.read:,}"
    return {"text": f"train {used}; {others}"}


def examine_plain(config: Config) -> tuple[Report, dict[str, str]]:
    """Of a language model: lines."""
    tallies: dict[str, TextTally] = {name: TextTally() for name in splits_of(config)}
    lines: dict[str, set[int]] = {name: set() for name in tallies}
    repeated: dict[str, Noted] = {name: Noted() for name in tallies}
    long = dict.fromkeys(tallies, 0)
    for split in splits_of(config):
        for pair in read_split(config.data, split, config.task):
            tallies[split].add(pair.target, pair.line)
            if len(pair.target) >= LONG_LINE:
                long[split] += 1
                key = hash(pair.target.strip())
                lines[split].add(key)
                if split != "train" and key in lines["train"]:
                    repeated[split].add(pair.line, pair.target)
    findings: list[Finding] = []
    for name, tally in tallies.items():
        findings += damage_findings(name, tally)
        if share(repeated[name].count, long[name]) > REPEATED:
            evidence = f"{name}: {of(repeated[name].count, long[name])} of its longer lines stand in train"
            findings.append(config_finding("held-out-in-train", evidence + shown(repeated[name].examples)))
    told = ", ".join(f"{name} {tally.lines:,} lines" for name, tally in tallies.items())
    return make_report(findings, ["no letters are damaged", "held-out text does not stand in train"]), {
        "text": told
    }
