"""Runs an exhibit: the program as it stands, and with its one line mended."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any

from manyheads.doctor.museum.words import LABELS, SYSTEMS, WORDS, Language, Words
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.doctor.report import Report

__all__ = ["Exhibit", "Performance", "Visit", "exhibit", "exhibits", "perform", "played", "visit"]

MEND = "# mend: "


@dataclass(frozen=True)
class Exhibit:
    """One of the programs.

    Attributes:
        name: kebab-case; that of the defect the doctor finds in it.
        number: 1 to 18.
        origin: the systems it was met in, of `SYSTEMS`.
    """

    name: str
    number: int
    origin: tuple[str, ...]

    def words(self, language: Language) -> Words:
        """What is told of it."""
        return WORDS[language][self.name]

    @property
    def source(self) -> str:
        """The program's text."""
        data = pkgutil.get_data(__package__, f"{self.name.replace('-', '_')}.py")
        assert data is not None
        return data.decode()

    @property
    def mends(self) -> list[tuple[str, str]]:
        """(wrong line, right line) of each place, without indentation."""
        lines = self.source.split("\n")
        return [
            (before.strip(), line.strip().removeprefix(MEND))
            for before, line in pairwise(lines)
            if line.strip().startswith(MEND)
        ]

    @property
    def mended_source(self) -> str:
        """The program's text with its wrong line replaced."""
        text = self.source
        for wrong, right in self.mends:
            text = text.replace(wrong + "\n", right + "\n", 1)
        return text


EXHIBITS = (
    Exhibit("no-start-symbol", 1, ("notebook",)),
    Exhibit("wrong-tokenizer", 2, ("notebook",)),
    Exhibit("padding-mask-on-queries", 3, ("notebook", "repository")),
    Exhibit("weak-embeddings", 4, ("notebook",)),
    Exhibit("target-not-shifted", 5, ("lab",)),
    Exhibit("tested-on-training-data", 6, ("notebook", "lab")),
    Exhibit("scaled-by-model-width", 7, ("attention",)),
    Exhibit("shared-projections", 8, ("attention",)),
    Exhibit("no-source-padding-mask", 9, ("lab",)),
    Exhibit("dropout-on-residual", 10, ("attention",)),
    Exhibit("end-kept-on-cut-targets", 11, ("notebook",)),
    Exhibit("mean-of-batch-means", 12, ("notebook",)),
    Exhibit("not-bleu", 13, ("repository",)),
    Exhibit("fixed-padding", 14, ("notebook",)),
    Exhibit("schedule-without-state", 15, ("notebook",)),
    Exhibit("position-limit", 16, ("attention",)),
    Exhibit("mask-fill", 17, ("attention", "repository")),
    Exhibit("mask-as-value", 18, ("lab",)),
)


def exhibits() -> tuple[Exhibit, ...]:
    """All of them, in order."""
    return EXHIBITS


def exhibit(name: str) -> Exhibit:
    """An exhibit by its name or number.

    Raises:
        UsageError: there is none.
    """
    for one in EXHIBITS:
        if name in (one.name, str(one.number)):
            return one
    raise UsageError(f"there is no exhibit {name}. Those there are: {', '.join(one.name for one in EXHIBITS)}.")


@dataclass(frozen=True)
class Performance:
    """What a program showed, and what the doctor said of it."""

    shown: list[str]
    report: Report


def perform(text: str, name: str) -> Performance:
    """Run the text of an exhibit, and have it examined."""
    import torch

    module = ModuleType(name)
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")  # nn.Transformer uses them unasked
        torch.manual_seed(0)
        exec(compile(text, name, "exec"), vars(module))
        functions: dict[str, Any] = vars(module)
        return Performance(list(functions["show"]()), functions["examined"]())


@dataclass(frozen=True)
class Visit:
    """An exhibit as it stands, and mended."""

    exhibit: Exhibit
    before: Performance
    after: Performance

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "number": self.exhibit.number,
            "name": self.exhibit.name,
            "mends": [{"wrong": wrong, "right": right} for wrong, right in self.exhibit.mends],
            "before": {"shown": self.before.shown, "doctor": self.before.report.to_json()},
            "after": {"shown": self.after.shown, "doctor": self.after.report.to_json()},
        }


def visit(one: Exhibit) -> Visit:
    """Run an exhibit both ways."""
    return Visit(one, *(perform(text, one.name) for text in (one.source, one.mended_source)))


def played(one: Exhibit, language: Language) -> Iterator[str]:
    """The whole visit, line by line."""
    words, labels = one.words(language), LABELS[language]
    both = visit(one)
    before, after = both.before, both.after
    yield f"{one.number}. {words.title}"
    yield f"({labels.met_in}: {', '.join(SYSTEMS[language][system] for system in one.origin)})"
    yield from section(labels.seen, [words.seen, *indented(before.shown)])
    yield from section(labels.wrong, [words.wrong])
    yield from section(labels.doctor, indented(before.report.lines()))
    mended = [line for wrong, right in one.mends for line in (f"- {wrong}", f"+ {right}")]
    yield from section(labels.mend, [words.mend, *indented(mended)])
    yield from section(labels.after, indented(after.shown))
    yield from section(labels.doctor, indented(after.report.lines()))


def section(title: str, lines: list[str]) -> Iterator[str]:
    """A heading and what stands under it."""
    yield ""
    yield f"■ {title}"
    yield from lines


def indented(lines: list[str]) -> list[str]:
    """Lines moved to the right."""
    return [f"    {line}" for line in lines]
