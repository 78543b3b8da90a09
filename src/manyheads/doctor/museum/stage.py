"""Run an exhibit: its program as it is, and with its one wrong line mended."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any

from manyheads.doctor.museum.texts import EXHIBIT_TEXTS, LABELS, SYSTEMS, ExhibitText
from manyheads.doctor.texts import Language
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.doctor.report import Report

__all__ = ["Exhibit", "Performance", "Visit", "exhibit", "exhibits", "perform", "played", "visit"]

MEND = "# mend: "


@dataclass(frozen=True)
class Exhibit:
    """Program that shows a defect.

    Attributes:
        name: kebab-case; name of the finding that the doctor reports for it.
        number: 1 to 18.
        origin: systems in which the defect was met, keys of `SYSTEMS`.
    """

    name: str
    number: int
    origin: tuple[str, ...]

    def text(self, language: Language) -> ExhibitText:
        """Return title, symptom, cause and mend."""
        return EXHIBIT_TEXTS[language][self.name]

    @property
    def source(self) -> str:
        """Return the source text of the program."""
        data = pkgutil.get_data(__package__, f"{self.name.replace('-', '_')}.py")
        assert data is not None
        return data.decode()

    @property
    def mends(self) -> list[tuple[str, str]]:
        """Return (wrong line, right line) of each mend, without indentation."""
        lines = self.source.split("\n")
        return [
            (before.strip(), line.strip().removeprefix(MEND))
            for before, line in pairwise(lines)
            if line.strip().startswith(MEND)
        ]

    @property
    def mended_source(self) -> str:
        """Return the source text with the wrong line replaced."""
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
    """Return all exhibits in order."""
    return EXHIBITS


def exhibit(name: str) -> Exhibit:
    """Return an exhibit by its name or number.

    Raises:
        UsageError: there is no such exhibit.
    """
    for one in EXHIBITS:
        if name in (one.name, str(one.number)):
            return one
    raise UsageError(f"there is no exhibit {name}. Those there are: {', '.join(one.name for one in EXHIBITS)}.")


@dataclass(frozen=True)
class Performance:
    """Output of a program, and the report of the doctor about it."""

    shown: list[str]
    report: Report


def perform(text: str, name: str) -> Performance:
    """Run the source text of an exhibit, and examine it."""
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
    """Performances of an exhibit, as it is and mended."""

    exhibit: Exhibit
    before: Performance
    after: Performance

    def to_json(self, language: Language = "en") -> dict[str, Any]:
        """Return plain values; causes and cures are in the given language."""
        return {
            "number": self.exhibit.number,
            "name": self.exhibit.name,
            "mends": [{"wrong": wrong, "right": right} for wrong, right in self.exhibit.mends],
            "before": {"shown": self.before.shown, "doctor": self.before.report.to_json(language)},
            "after": {"shown": self.after.shown, "doctor": self.after.report.to_json(language)},
        }


def visit(one: Exhibit) -> Visit:
    """Run an exhibit as it is and mended."""
    return Visit(one, *(perform(text, one.name) for text in (one.source, one.mended_source)))


def played(one: Exhibit, language: Language) -> Iterator[str]:
    """Run an exhibit both ways and yield the lines of the visit."""
    text, labels = one.text(language), LABELS[language]
    both = visit(one)
    before, after = both.before, both.after
    yield f"{one.number}. {text.title}"
    yield f"({labels.met_in}: {', '.join(SYSTEMS[language][system] for system in one.origin)})"
    yield from section(labels.seen, [text.seen, *indented(before.shown)])
    yield from section(labels.wrong, [text.wrong])
    yield from section(labels.doctor, indented(before.report.lines(language)))
    mended = [line for wrong, right in one.mends for line in (f"- {wrong}", f"+ {right}")]
    yield from section(labels.mend, [text.mend, *indented(mended)])
    yield from section(labels.after, indented(after.shown))
    yield from section(labels.doctor, indented(after.report.lines(language)))


def section(title: str, lines: list[str]) -> Iterator[str]:
    """Yield a heading and the lines below it."""
    yield ""
    yield f"■ {title}"
    yield from lines


def indented(lines: list[str]) -> list[str]:
    """Return lines indented by four blanks."""
    return [f"    {line}" for line in lines]
