"""Find defects in the outputs of a translator: empty, unfinished, looping, copied, or of odd lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bitext.defects import LEAST_WORDS, letters_of, repeats
from bitext.letters import has_text

MIN_LENGTH_RATIO, MAX_LENGTH_RATIO = 0.8, 1.25  # characters of all outputs over those of all references
WORRY = 0.03  # share of outputs with a defect above which it is no accident
_FAR_LENGTH_RATIO = 2.0  # an output is far too long above so many times the characters of its reference
_SLACK_CHARACTERS = 20  # and so many more


@dataclass(frozen=True)
class Output:
    """Source, reference and output of one line, and whether the output ended.

    `other_language` is the language of the output if that is not the target language, else "".
    """

    line: int
    source: str
    reference: str
    text: str
    ended: bool
    other_language: str = ""

    @property
    def comparable(self) -> bool:
        """Return whether source and reference have text."""
        return has_text(self.source) and has_text(self.reference)

    @property
    def copied(self) -> bool:
        """Return whether the output is its source, and the reference is not."""
        source = letters_of(self.source)
        long_enough = len(self.source.split()) >= LEAST_WORDS
        return long_enough and letters_of(self.text) == source != letters_of(self.reference)

    @property
    def empty(self) -> bool:
        """Return whether the output is empty, and neither source nor reference is."""
        return self.comparable and not has_text(self.text)


@dataclass(frozen=True)
class OutputDefect:
    """A defect that some outputs show.

    Attributes:
        name: key of `DEFECTS`.
        count: number of outputs that show it.
        line: number of the first of them, from 1.
    """

    name: str
    count: int
    line: int


DEFECTS: Mapping[str, Callable[[Output], bool]] = {
    "never-ends": lambda output: not output.ended,
    "nothing-said": lambda output: output.empty,
    "repeats-itself": lambda output: repeats(output.text) and not repeats(output.reference),
    "copies-its-source": lambda output: output.copied,
    "in-another-language": lambda output: bool(output.other_language),
    "far-too-long": lambda output: far_longer(output.text, output.reference),
    "far-too-short": lambda output: has_text(output.text) and far_longer(output.reference, output.text),
}


def find_defects(outputs: Sequence[Output]) -> Iterator[OutputDefect]:
    """Yield each defect that at least one output shows; lines without a source or a reference have none."""
    outputs = [output for output in outputs if output.comparable]
    for name, shows in DEFECTS.items():
        lines = [output.line for output in outputs if shows(output)]
        if lines:
            yield OutputDefect(name, len(lines), lines[0])


def length_ratio(outputs: Sequence[Output]) -> float:
    """Return the characters of all outputs divided by those of all references, on lines with both sides; else 1."""
    outputs = [output for output in outputs if output.comparable]
    if not outputs:
        return 1.0
    return sum(len(output.text) for output in outputs) / max(1, sum(len(output.reference) for output in outputs))


def far_longer(text: str, other: str) -> bool:
    """Return whether a text is far longer than another one."""
    return len(text) > _FAR_LENGTH_RATIO * len(other) + _SLACK_CHARACTERS
