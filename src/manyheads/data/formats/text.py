"""Define the text that all readers return, and choose its two languages among the languages of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from manyheads import languages
from manyheads.errors import DataError, UsageError

__all__ = [
    "LICENCE", "ORIGIN", "ParallelText", "TextRequest", "Unit", "choose_languages", "listed", "match_language",
    "no_text_in", "pairs_of_units", "short_line", "stated",
]  # fmt: skip

LICENCE = "licen[cs]e"  # words before the licence and the origin in headers and README files
ORIGIN = "website|origin|url|source"
MOST_LANGUAGES = 1_000  # languages of a file, kept for an error
MOST_LISTED, LONGEST_LISTED = 20, 60  # names in an error, characters of each

Unit = dict[str, str]  # language -> text; the language is "" if the file names none


@dataclass(frozen=True)
class TextRequest:
    """Request for parallel text of a file.

    Attributes:
        source, target: the languages; None to take them from the file.
        columns: names of the columns of source and target in a table; numbers from 1 mean a table without header.
        split: split of a Hugging Face data set.
    """

    source: str | None = None
    target: str | None = None
    columns: tuple[str, str] | None = None
    split: str = "train"


@dataclass(frozen=True)
class ParallelText:
    """Parallel text of one input.

    Attributes:
        languages: source and target, by the names requested.
        pairs: the texts; "" for a missing side. Reading raises `DataError` at the first fault.
        licence: licence, if the input states it.
        origin: name or address of the corpus, if the input states it.
    """

    languages: tuple[str, str]
    pairs: Iterable[tuple[str, str]]
    licence: str | None = None
    origin: str | None = None


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
        others = [code(other) for other in names if other != match]
        if len(others) == 1:
            return (requested, others[0]) if request.source else (others[0], requested)
    elif len(names) == 2:
        return code(names[0]), code(names[1])
    raise UsageError(
        f"{name}: the languages are not clear; it names {listed(names)}. Say both: --source de --target en."
    )


def code(language: str) -> str:
    """Return the code of a language in the spelling of manyheads: de for "DE", en-gb for "EN_gb"."""
    if "@" in language or "." in language:  # of gettext
        return languages.normal_form(language)
    first, *rest = re.split("[-_]", language)
    return "-".join([first.lower(), *rest])


def pairs_of_units(
    units: Iterator[Unit], request: TextRequest, name: str
) -> tuple[tuple[str, str], Iterator[tuple[str, str]]]:
    """Return the languages of the units of a file, and an iterator over their pairs.

    Raises:
        DataError: there is no unit; while reading, at the end: no unit had one of the languages.
        UsageError: the languages are not clear.
    """
    first = next(units, None)
    if first is None:
        raise DataError(f"{name} holds no translation. Name a file with text in two languages.")
    languages = choose_languages(request, first, name)
    return languages, read_pairs(chain([first], units), languages, name)


def read_pairs(units: Iterable[Unit], languages: tuple[str, str], name: str) -> Iterator[tuple[str, str]]:
    """Yield source and target of each unit, "" for a language that it lacks."""
    present: dict[str, None] = {}
    for unit in units:
        if len(present) < MOST_LANGUAGES:
            present.update(dict.fromkeys(unit))
        source, target = (match_language(language, unit) for language in languages)
        known = source != target
        yield (unit.get(source or "", "") if known else ""), (unit.get(target or "", "") if known else "")
    for language in languages:
        if match_language(language, present) is None:
            raise no_text_in(language, present, name)


def no_text_in(language: str, present: Iterable[str], name: str) -> DataError:
    """Return the error for a language that a file does not hold."""
    languages = listed(sorted(present))
    return DataError(
        f"{name} holds no text in {language}. Languages there: {languages}. Choose with --source and --target."
    )


def listed(names: Iterable[str]) -> str:
    """Return the first names that a file states, each short and in one line, for a message."""
    first = list(islice(filter(None, names), MOST_LISTED + 1))
    short = map(short_line, first[:MOST_LISTED])
    return ", ".join([*short, *(["and others"] if len(first) > MOST_LISTED else [])]) or "none"


def short_line(text: str) -> str:
    """Return a text as one line of at most `LONGEST_LISTED` characters, for a message."""
    return " ".join(text.split())[:LONGEST_LISTED]


def stated(text: str, *, what: str) -> str | None:
    """Return the statement after a word and a colon in a header or a README, such as "License: CC BY 2.0 FR".

    Args:
        text: the header or the file.
        what: regular expression of the word.
    """
    match = re.search(rf"^\W*(?:{what})\s*:\s*(\S.*)$", text, re.IGNORECASE | re.MULTILINE)
    return " ".join(match[1].split())[:300] if match else None
