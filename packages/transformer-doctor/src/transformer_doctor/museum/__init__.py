"""The museum: 18 defects, each a small program that shows what a person sees and what is wrong.

A program holds its wrong line and, in the comment below it, the line that fixes it. It is run and examined
by the doctor, first as it is, then with that one line replaced. `show` of a program yields lines of text,
`report` returns the report of the doctor; `museum.base` holds what several programs are made of.
"""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any

from transformer_doctor.errors import UsageError, require
from transformer_doctor.texts import Language, load_texts

if TYPE_CHECKING:
    from transformer_doctor.report import Report

FIX = "# fix: "


TEXTS: Mapping[Language, Mapping[str, Any]] = load_texts(__package__, "texts")


@dataclass(frozen=True)
class Exhibit:
    """Program that shows a defect.

    Attributes:
        name: kebab-case; name of the finding that the doctor reports for it.
        number: 1 to 18.
        origin: systems in which the defect was met, keys of the table "systems" of the texts.
    """

    name: str
    number: int
    origin: tuple[str, ...]

    def text(self, language: Language) -> Mapping[str, str]:
        """Return its `title`, what a person has `seen`, what is `wrong`, and what a program must `mend`."""
        texts: Mapping[str, str] = TEXTS[language]["exhibits"][self.name]
        return texts

    @property
    def source(self) -> str:
        """Return the source text of the program."""
        data = pkgutil.get_data(__package__, f"{self.name.replace('-', '_')}.py")
        assert data is not None
        return data.decode()

    @property
    def fix(self) -> tuple[str, str]:
        """Return the wrong line and the correct one, without indentation."""
        lines = [line.strip() for line in self.source.split("\n")]
        return next((before, line.removeprefix(FIX)) for before, line in pairwise(lines) if line.startswith(FIX))

    @property
    def fixed_source(self) -> str:
        """Return the source text with the wrong line replaced."""
        wrong, correct = self.fix
        return self.source.replace(f"{wrong}\n", f"{correct}\n", 1)


EXHIBITS = tuple(
    Exhibit(name, texts["number"], tuple(texts["origin"])) for name, texts in TEXTS["en"]["exhibits"].items()
)


def exhibit(name: str) -> Exhibit:
    """Return an exhibit by its name or number.

    Raises:
        UsageError: there is no such exhibit.
    """
    for entry in EXHIBITS:
        if name in (entry.name, str(entry.number)):
            return entry
    raise UsageError(f"there is no exhibit {name}. Those there are: {', '.join(entry.name for entry in EXHIBITS)}.")


def listing(language: Language) -> list[dict[str, Any]]:
    """Return number, name and title of every exhibit."""
    return [
        {"number": entry.number, "name": entry.name, "title": entry.text(language)["title"]} for entry in EXHIBITS
    ]


def listing_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each row of a listing."""
    return (f"{row['number']:>2}  {row['name']:<24}  {row['title']}" for row in rows)


@dataclass(frozen=True)
class Performance:
    """Output of a program, and the report of the doctor about it."""

    shown: list[str]
    report: Report


def perform(text: str, name: str) -> Performance:
    """Run the source text of an exhibit, and examine it."""
    import torch

    if "import sacrebleu" in text:
        require("sacrebleu", f"the exhibit {name}")
    module = ModuleType(name)
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "The PyTorch API of nested tensors"
        )  # nn.Transformer uses them on its own
        torch.manual_seed(0)
        exec(compile(text, name, "exec"), vars(module))
        functions: dict[str, Any] = vars(module)
        return Performance(list(functions["show"]()), functions["report"]())


def visit(chosen: Exhibit) -> list[Performance]:
    """Run an exhibit as it is and fixed."""
    return [perform(text, chosen.name) for text in (chosen.source, chosen.fixed_source)]


def to_json(chosen: Exhibit, language: Language) -> dict[str, Any]:
    """Run an exhibit as it is and fixed, and return plain values; causes and cures are in the given language."""
    wrong, correct = chosen.fix
    before, after = (
        {"shown": exhibit.shown, "doctor": exhibit.report.to_json(language)} for exhibit in visit(chosen)
    )
    mends = [{"wrong": wrong, "right": correct}]
    return {"number": chosen.number, "name": chosen.name, "mends": mends, "before": before, "after": after}


def play(chosen: Exhibit, language: Language) -> Iterator[str]:
    """Run an exhibit as it is and fixed, and yield the lines of the visit."""
    text, labels, systems = chosen.text(language), TEXTS[language]["labels"], TEXTS[language]["systems"]
    (before, after), (wrong, correct) = visit(chosen), chosen.fix
    yield f"{chosen.number}. {text['title']}"
    yield f"({labels['met_in']}: {', '.join(systems[system] for system in chosen.origin)})"
    yield from section(labels["seen"], [text["seen"], *indented(before.shown)])
    yield from section(labels["wrong"], [text["wrong"]])
    yield from section(labels["doctor"], indented(before.report.brief_lines(language)))
    yield from section(labels["mend"], [text["mend"], *indented([f"- {wrong}", f"+ {correct}"])])
    yield from section(labels["after"], indented(after.shown))
    yield from section(labels["doctor"], indented(after.report.brief_lines(language)))


def section(title: str, lines: list[str]) -> Iterator[str]:
    """Yield a heading and the lines below it."""
    yield ""
    yield f"■ {title}"
    yield from lines


def indented(lines: list[str]) -> list[str]:
    """Return lines indented by four blanks."""
    return [f"    {line}" for line in lines]
