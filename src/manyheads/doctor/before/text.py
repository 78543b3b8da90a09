"""Findings about the text of a configuration, from the counts of its splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from manyheads.config.schema import Config
from manyheads.data.report import SplitReport
from manyheads.doctor.before.alignment import Alignment
from manyheads.doctor.before.languages import likeness
from manyheads.doctor.before.tally import LabelTally, Noted, PairTally, TextTally
from manyheads.doctor.catalogue import config_finding
from manyheads.doctor.evidence import share, shown
from manyheads.doctor.report import Finding

__all__ = ["damage_findings", "label_findings", "language_findings", "pair_findings", "split_findings"]

# Shares of the lines of a split from which on something is a warning, or an error. Khayrallah and Koehn (2018) put
# 5 % to 100 % of each noise into a corpus: 5 % of copies already ruin a translator, 5 % of misaligned lines hardly.
COPIED, COPIED_WRONG = 0.005, 0.05
MIXED = 0.03  # frequent words are wrong about a line now and then, names and citations are in another language
DAMAGED, DAMAGED_WRONG = 0.001, 0.02
QUESTION = 0.02  # 0.3 % of IMDb's reviews have no blank after a question mark
ENTITIES = 0.01
SWAPPED = 0.5  # of the pairs that can be told at all
LEAST_TOLD = 10  # pairs; fewer say nothing
LEAST_LINES = 3
DUPLICATED = 0.1
HELD_OUT, HELD_OUT_WRONG = 0.005, 0.05  # the second as in `examine_split`
NEAR = 0.1
EMPTY, ODD = 0.02, 0.05
FEW_VALIDATION = 100  # at an accuracy or a BLEU of a half, five points are then one standard deviation
TOGETHER = 0.3  # least correlation of lengths: of true pairs it is 0.59 to 0.97, in eleven public sets
SHIFTED = 0.1  # by how much a shift by one line must be better
UNBALANCED = 10  # times

DAMAGES = {
    "misread": "hold letters read in the wrong encoding",
    "lost": "have lost letters",
    "question": "have a question mark in the place of a letter",
}


def split_findings(name: str, split: SplitReport, config: Config) -> Iterator[Finding]:
    """Yield findings about empty lines, duplicates, overlap with train and unlike lengths of a split."""
    read, data = split.read, config.data
    if share(split.empty, read) > EMPTY:
        yield config_finding("empty-lines", f"{name}: {of(split.empty, read)} lines have no text on a side")
    if name == "train":
        repeated = share(split.duplicates, read)
        if repeated > DUPLICATED:
            what = "they are dropped" if data.drop_duplicates else "data.drop_duplicates is off"
            evidence = f"train: {of(split.duplicates, read)} came before; {what}"
            yield config_finding("much-duplicated", evidence, "note" if data.drop_duplicates else None)
        if split.filtered and share(split.filtered.ratio, read) > ODD:
            evidence = f"train: {of(split.filtered.ratio, read)} pairs with one side over {data.max_ratio:g} times"
            yield config_finding("odd-lengths", f"{evidence} as long as the other")
        return
    if name == "valid" and read < FEW_VALIDATION:
        yield config_finding("few-validation-texts", f"valid: {read:,} texts")
    overlap = split.overlap.get("train")
    if overlap is None:
        return
    seen = share(overlap.pairs, read)
    if seen > HELD_OUT:
        evidence = f"{name}: {of(overlap.pairs, read)} stand in train"
        if data.drop_overlap:
            yield config_finding(
                "held-out-in-train", f"{evidence}; data.drop_overlap takes them out of train", "note"
            )
        else:
            yield config_finding("held-out-in-train", evidence, "error" if seen > HELD_OUT_WRONG else "warning")


def pair_findings(name: str, tally: PairTally, near: Noted | None = None) -> Iterator[Finding]:
    """Yield findings about the pairs of one split."""
    for side, text in zip(("source", "target"), tally.sides, strict=True):
        yield from damage_findings(f"{name}, {side}", text)
    copied = share(tally.copied.count, tally.pairs)
    if copied > COPIED and tally.copied.count >= LEAST_LINES:
        evidence = f"{name}: {of(tally.copied.count, tally.pairs)} are the same on both sides"
        severity = "error" if copied > COPIED_WRONG else None
        yield config_finding("source-copied", evidence + shown(tally.copied.examples), severity)
    alignment = tally.alignment()
    if alignment is not None:
        yield from alignment_findings(name, alignment, tally)
    if near is not None:
        yield from near_findings(name, near, tally.pairs)


def near_findings(name: str, near: Noted, whole: int) -> Iterator[Finding]:
    """Yield a finding if a held-out split has near copies in train."""
    if share(near.count, whole) > NEAR:
        evidence = f"{name}: of {of(near.count, whole)} a near copy stands in train"
        yield config_finding("near-copies-in-train", evidence + shown(near.examples))


def damage_findings(where: str, text: TextTally) -> Iterator[Finding]:
    """Yield findings about lines with a damaged encoding or HTML entities."""
    for kind, noted in text.damaged.items():
        if noted.count < LEAST_LINES:
            continue
        part = share(noted.count, text.lines)
        told = f"{where}: {of(noted.count, text.lines)} lines"
        if kind == "entities":
            if part > ENTITIES:
                yield config_finding("html-entities", f"{told} hold such as &amp;{shown(noted.examples)}")
        elif part > (QUESTION if kind == "question" else DAMAGED):
            what = DAMAGES[kind]
            severity = "error" if part > DAMAGED_WRONG else None
            yield config_finding("encoding-damaged", f"{told} {what}{shown(noted.examples)}", severity)


def alignment_findings(name: str, alignment: Alignment, tally: PairTally) -> Iterator[Finding]:
    """Yield a finding if lines do not correspond, everywhere or in some stretches."""
    lines = tally.lines
    if alignment.whole < TOGETHER and alignment.blocks < TOGETHER:
        evidence = f"{name}: the lengths of the two sides do not go together (correlation {alignment.whole:.2f})"
        if alignment.shifted > alignment.whole + SHIFTED:
            evidence += f"; with one side moved by one line they do ({alignment.shifted:.2f})"
        elif alignment.apart and alignment.apart[0].first > 0:
            evidence += f"; up to line {lines[alignment.apart[0].first]:,} they do"
        yield config_finding("misaligned", evidence)
    elif alignment.apart:
        parts = [f"{lines[one.first]:,} to {lines[one.last]:,}" for one in alignment.apart[:3]]
        more = ", ..." if alignment.apart[3:] else ""
        yield config_finding(
            "misaligned",
            f"{name}: in lines {', '.join(parts)}{more} the lengths of the two sides do not go together "
            f"(correlation {alignment.apart[0].correlation:.2f}; elsewhere {alignment.blocks:.2f})",
        )


def language_findings(tallies: Mapping[str, PairTally]) -> Iterator[Finding]:
    """Yield findings about swapped or mixed languages in each split."""
    for name, tally in tallies.items():
        told, swapped = tally.told, tally.swapped
        if told >= LEAST_TOLD and swapped.count > SWAPPED * told:
            evidence = f"{name}: in {of(swapped.count, told)} pairs each side looks like the other's language"
            yield config_finding("languages-swapped", evidence + shown(swapped.examples))
            continue
        for noted, what in ((tally.only_source, "source"), (tally.only_target, "target"), (swapped, "")):
            if noted.count >= LEAST_LINES and share(noted.count, tally.pairs) > MIXED:
                looks = f"both sides look like the {what}'s language" if what else "the sides look swapped"
                evidence = f"{name}: in {of(noted.count, tally.pairs)} pairs {looks}"
                yield config_finding("languages-mixed", evidence + shown(noted.examples))
    yield from swapped_against_train(tallies)


def swapped_against_train(tallies: Mapping[str, PairTally]) -> Iterator[Finding]:
    """Yield a finding for held-out splits whose sides are swapped in comparison with train (unknown languages)."""
    train = tallies.get("train")
    if train is None or train.tell is not None:
        return
    for name, tally in tallies.items():
        if name == "train" or not all(tally.words):
            continue
        straight = [likeness(words, known) for words, known in zip(tally.words, train.words, strict=True)]
        crossed = [likeness(words, known) for words, known in zip(tally.words, reversed(train.words), strict=True)]
        if all(other > own for own, other in zip(straight, crossed, strict=True)):
            evidence = (
                f"{name}: {crossed[0]:.0%} of the words of its source stand in train's target and "
                f"{straight[0]:.0%} in train's source; of its target {crossed[1]:.0%} stand in train's source, "
                f"{straight[1]:.0%} in train's target"
            )
            yield config_finding("languages-swapped", evidence)


def label_findings(tallies: Mapping[str, LabelTally]) -> Iterator[Finding]:
    """Yield findings about labels that contradict each other, are rare, or are missing from a split."""
    for name, tally in tallies.items():
        yield from damage_findings(name, tally.text)
        if tally.conflicts.count >= LEAST_LINES and share(tally.conflicts.count, tally.text.lines) > DAMAGED:
            evidence = f"{name}: {of(tally.conflicts.count, tally.text.lines)} texts came before with another label"
            yield config_finding("labels-contradict", evidence + shown(tally.conflicts.examples))
    train, valid = tallies["train"], tallies.get("valid")
    (most, largest), *_, (fewest, smallest) = train.classes.most_common()
    if largest > UNBALANCED * smallest:
        evidence = f'train: {largest:,} texts of "{most}", {smallest:,} of "{fewest}"'
        yield config_finding("labels-unbalanced", evidence)
    missing = sorted(train.classes.keys() - valid.classes.keys()) if valid else []
    if missing:
        named = ", ".join(f'"{name}"' for name in missing[:5])
        yield config_finding("labels-missing", f"valid: no text of {named}{', ...' if missing[5:] else ''}")


def of(part: int, whole: int) -> str:
    """Return such as "12 of 1,000 (1.2 %)"."""
    percent = 100 * share(part, whole)
    return (
        f"{part:,} of {whole:,} ({percent:.2g} %)" if percent < 10 else f"{part:,} of {whole:,} ({percent:.0f} %)"
    )
