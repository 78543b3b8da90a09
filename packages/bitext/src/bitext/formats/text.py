"""Define the text that all readers return, and choose its two languages among the languages of a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice

from bitext import languages
from bitext.errors import DataError, UsageError

LICENCE = "licen[cs]e"  # words before the licence and the origin in headers and README files
ORIGIN = "website|origin|url|source"
_MOST_LANGUAGES = 1_000  # languages of a file, kept for an error
MEND = "Mend the file, or get it again."
_MOST_DAMAGE = 5  # damaged units that are named
_MOST_UNITS = 100  # units whose languages are read before the languages of a file are chosen
# Fields of the header of a PO file, which converters to other formats keep as a unit.
_HEADER_FIELD = re.compile(
    "^(?:Project-Id-Version|Report-Msgid-Bugs-To|POT-Creation-Date|PO-Revision-Date|Last-Translator|Language-Team"
    "|MIME-Version|Content-Type|Content-Transfer-Encoding|Plural-Forms|X-Generator):",
    re.MULTILINE,
)
_MOST_LISTED, _LONGEST_LISTED = 20, 60  # names in an error, characters of each

Unit = dict[str, str]  # language -> text; the language is "" if the file names none


@dataclass(frozen=True)
class TextRequest:
    """Request for parallel text of a file.

    Attributes:
        source, target: the languages; None to take them from the file.
        columns: names of the columns of source and target in a table; numbers from 1 mean a table without header.
        split: split of a Hugging Face data set.
        strict: whether a damaged unit is an error, and not left out.
    """

    source: str | None = None
    target: str | None = None
    columns: tuple[str, str] | None = None
    split: str = "train"
    strict: bool = False


@dataclass
class Skipped:
    """Units of a file that are no pair of texts.

    Attributes:
        strict: whether damage is an error.
        counts: number of units by the reason.
        damage: line and reason of the first damaged units.
    """

    strict: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    damage: list[str] = field(default_factory=list)

    def add_damage(self, name: str, place: str, reason: str, kind: str = "damaged") -> None:
        """Count a damaged unit or row, or with another `kind` something that costs no unit.

        Raises:
            DataError: damage is an error.
        """
        if self.strict:
            raise DataError(f"{name}, {place}: {reason.removesuffix('.')}. Without --strict it is left out.")
        self.counts[kind] += 1
        if len(self.damage) < _MOST_DAMAGE:
            self.damage.append(f"{place}: {reason}")

    def check(self, name: str, good: int, cure: str = MEND) -> None:
        """Raise `DataError` if more units are damaged than not."""
        count = self.counts["damaged"]
        if count > good:
            total = f": {count:,} of {count + good:,} are damaged" if good else ""
            raise DataError(f"{name}{total}, {self.damage[0].removesuffix('.')}. {cure}")


@dataclass(frozen=True)
class ParallelText:
    """Parallel text of one input.

    Attributes:
        languages: source and target, by the names requested.
        pairs: the texts; "" for a missing side. Reading raises `DataError` at the first fault.
        licence: licence, if the input states it.
        origin: name or address of the corpus, if the input states it.
        skipped: what was left out, as far as the pairs were read.
    """

    languages: tuple[str, str]
    pairs: Iterable[tuple[str, str]]
    licence: str | None = None
    origin: str | None = None
    skipped: Skipped = field(default_factory=Skipped)


def match_language(language: str, present: Iterable[str]) -> str | None:
    """Return the name that a file uses for a language, as `languages.match_language` does.

    A file that names only one of its two languages has "" for the other; "" matches if no name does.
    """
    names = tuple(present)
    found = languages.match_language(language, names)
    return "" if found is None and "" in names else found


def choose_languages(request: TextRequest, present: Iterable[str], name: str) -> tuple[str, str]:
    """Return source and target: as requested, else the languages of a file if it has two.

    Raises:
        DataError: the file lacks the one language requested.
        UsageError: the file has not two languages, or does not name them.
    """
    all_names = list(present)
    names = list(filter(None, all_names))
    if request.source and request.target:
        return request.source, request.target
    requested = request.source or request.target
    if requested:
        match = match_language(requested, all_names)
        if match is None:
            raise no_text_in(requested, names, name)
        others = [_code(other) for other in names if other != match]
        if len(others) == 1:
            return (requested, others[0]) if request.source else (others[0], requested)
    elif len(names) == 2:
        return _code(names[0]), _code(names[1])
    raise UsageError(
        f"{name}: the languages are not clear; it names {list_names(names)}. Say both: --source de --target en."
    )


def _code(language: str) -> str:
    """Return the code of a language in the usual spelling: de for "DE", en-gb for "EN_gb"."""
    if "@" in language or "." in language:  # of gettext
        return languages.normal_form(language)
    first, *rest = re.split("[-_]", language)
    return "-".join([first.lower(), *rest])


def pairs_of_units(
    units: Iterator[Unit], request: TextRequest, name: str, skipped: Skipped
) -> tuple[tuple[str, str], Iterator[tuple[str, str]]]:
    """Return the languages of the units of a file, and an iterator over their pairs.

    Raises:
        DataError: there is no unit; while reading, at the end: no unit had one of the languages.
        UsageError: the languages are not clear.
    """
    first: list[Unit] = []
    present: dict[str, None] = {}
    while (
        len(first) < _MOST_UNITS
        and len(list(filter(None, present))) < 2
        and (unit := next(units, None)) is not None
    ):
        first.append(unit)
        present.update(dict.fromkeys(unit))
    if not first:
        raise DataError(f"{name} holds no translation. Name a file with text in two languages.")
    languages = choose_languages(request, present, name)
    return languages, _read_pairs(chain(first, units), languages, name, skipped)


def _read_pairs(
    units: Iterable[Unit], languages: tuple[str, str], name: str, skipped: Skipped
) -> Iterator[tuple[str, str]]:
    """Yield source and target of each unit, "" for a language that it lacks; headers of PO files are left out."""
    present: dict[str, None] = {}
    for unit in units:
        if len(present) < _MOST_LANGUAGES:
            present.update(dict.fromkeys(unit))
        if any("-" in text and len(_HEADER_FIELD.findall(text)) > 1 for text in unit.values()):
            skipped.counts["header"] += 1
            continue
        source, target = (match_language(language, unit) for language in languages)
        known = source != target
        yield (unit.get(source or "", "") if known else ""), (unit.get(target or "", "") if known else "")
    for language in languages:
        if match_language(language, present) is None:
            raise no_text_in(language, present, name)


def no_text_in(language: str, present: Iterable[str], name: str) -> DataError:
    """Return the error for a language that a file does not hold."""
    languages = list_names(sorted(present))
    return DataError(
        f"{name} holds no text in {language}. Languages there: {languages}. Choose with --source and --target."
    )


def list_names(names: Iterable[str]) -> str:
    """Return the first names that a file states, each short and in one line, for a message."""
    first = list(islice(filter(None, names), _MOST_LISTED + 1))
    short = map(short_line, first[:_MOST_LISTED])
    return ", ".join([*short, *(["and others"] if len(first) > _MOST_LISTED else [])]) or "none"


def short_line(text: str) -> str:
    """Return a text as one line of at most `_LONGEST_LISTED` characters, for a message."""
    return " ".join(text.split())[:_LONGEST_LISTED]


def find_statement(text: str, *, what: str) -> str | None:
    """Return the statement after a colon behind a word that matches `what`, such as "License: CC BY 2.0 FR"."""
    match = re.search(rf"^\W*(?:{what})\s*:\s*(\S.*)$", text, re.IGNORECASE | re.MULTILINE)
    return " ".join(match[1].split())[:300] if match else None
