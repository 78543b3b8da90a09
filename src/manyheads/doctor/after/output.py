"""Findings about the outputs of a translator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from manyheads.doctor.before.tally import LEAST_WORDS, Noted, plain
from manyheads.doctor.before.text import of
from manyheads.doctor.catalogue import run_finding
from manyheads.doctor.evidence import share, shown
from manyheads.doctor.report import Finding

__all__ = ["Output", "output_findings", "repeats"]

# Characters of all outputs over those of all references.
SHORT, VERY_SHORT, LONG = 0.8, 0.6, 1.25
SOME, MANY = 0.03, 0.2  # share of the outputs
LEAST_OUTPUTS = 2
SAME = 0.5  # share of different outputs among different sources
UNKNOWN, UNKNOWN_WORDS = 0.05, 0.5  # share of outputs with <unk>; of whole words they are usual
REPEATED_IN_A_ROW = re.compile(r"(?:^|\s)((?:\S+\s+){0,3}\S+)(?:\s+\1){3,}(?=\s|$)")  # up to four words, four times
REPEATED_LETTERS = re.compile(r"(\S{1,6}?)\1{7,}")  # in scripts without blanks: up to six letters, eight times


@dataclass(frozen=True)
class Output:
    """Source, reference and output of one line, and whether the output ended."""

    line: int
    source: str
    reference: str
    text: str
    ended: bool


def repeats(text: str) -> bool:
    """Return whether a text repeats itself again and again."""
    return bool(REPEATED_IN_A_ROW.search(text) or REPEATED_LETTERS.search(text))


def output_findings(outputs: Sequence[Output], *, whole_words: bool) -> Iterator[Finding]:
    """Yield findings about lengths, loops, copies, unknown symbols and equal outputs.

    Args:
        outputs: of held-out lines.
        whole_words: the vocabulary is one of whole words, in which unknown ones are usual.
    """
    yield from length_findings(outputs)
    for name, chosen in (
        ("never-ends", [one for one in outputs if not one.ended]),
        ("nothing-said", [one for one in outputs if not one.text.strip()]),
        ("repeats-itself", [one for one in outputs if repeats(one.text) and not repeats(one.reference)]),
        ("copies-its-source", [one for one in outputs if copied(one)]),
    ):
        yield from counted(name, chosen, len(outputs), SOME, MANY)
    unknown = [one for one in outputs if "<unk>" in one.text]
    yield from counted("writes-unknown", unknown, len(outputs), UNKNOWN_WORDS if whole_words else UNKNOWN, 1.0)
    sources = {one.source for one in outputs}
    texts = [one.text for one in outputs]
    if len(sources) >= 10 and len(set(texts)) < SAME * len(sources):
        often = max(set(texts), key=texts.count)
        evidence = f'{len(sources):,} different sources have {len(set(texts)):,} different outputs; "{often}"'
        yield run_finding("same-output", f"{evidence} comes {texts.count(often):,} times")


def length_findings(outputs: Sequence[Output]) -> Iterator[Finding]:
    """Yield a finding if all outputs together are too short or too long."""
    written, wanted = (
        sum(map(len, texts)) for texts in zip(*((o.text, o.reference) for o in outputs), strict=True)
    )
    ratio = share(written, wanted)
    evidence = f"{len(outputs):,} outputs are {ratio:.2f} times as long as their references"
    if ratio < SHORT:
        yield run_finding("too-short", evidence, "error" if ratio < VERY_SHORT else None)
    elif ratio > LONG:
        yield run_finding("too-long", evidence)


def copied(one: Output) -> bool:
    """Return whether an output is its source, and its reference is not."""
    long_enough = len(one.source.split()) >= LEAST_WORDS
    return long_enough and plain(one.text) == plain(one.source) != plain(one.reference)


def counted(name: str, chosen: Sequence[Output], whole: int, some: float, many: float) -> Iterator[Finding]:
    """Yield a finding, with examples, if enough lines show a defect."""
    part = share(len(chosen), whole)
    if part > some and len(chosen) >= LEAST_OUTPUTS:
        noted = Noted()
        for one in chosen:
            noted.add(one.line, f"{one.source} -> {one.text}")
        evidence = f"{of(len(chosen), whole)} outputs{shown(noted.examples)}"
        yield run_finding(name, evidence, "error" if part > many else None)
