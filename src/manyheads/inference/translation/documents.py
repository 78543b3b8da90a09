"""Read a file as a document, write it with its translations, and report on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from bitext.lines import damage_named
from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.formats import format_of, read_document
from manyheads.documents.units import Translated
from manyheads.errors import DataError
from manyheads.results import Result
from manyheads.search.options import SearchOptions

_HEAD = 4096  # bytes by which a format is recognised
_LARGEST = 1 << 28  # bytes of a document, which is held in memory
_SHOWN_DOUBTS, _SHOWN = 20, 40  # doubtful texts in a report, and characters of each


UnitFields = tuple[str, str | None, list[str]]  # text, word alignment and what is doubtful, in words


class Doubt(NamedTuple):
    """A unit whose translation should be read.

    Attributes:
        place: where it begins.
        source: its text.
        reasons: what is doubtful, in words.
    """

    place: str
    source: str
    reasons: list[str]


@dataclass(frozen=True)
class DocumentReport(Result):
    """The counts of a translated document, and its doubtful translations.

    Attributes:
        units: number of texts that were found.
        unchanged: number of those whose translation is their text.
        doubtful: those whose translation should be read.
        notes: what was not understood and copied.
    """

    units: int
    unchanged: int
    doubtful: list[Doubt] = field(default_factory=list)
    notes: Sequence[str] = ()

    def report(self) -> list[str]:
        """Return the figures as lines of text."""
        counts = f"{self.units:,} texts, {self.unchanged:,} unchanged, {len(self.doubtful):,} doubtful"
        doubts = [
            f"  {place}: {', '.join(reasons)}: {source[:_SHOWN]}"
            for place, source, reasons in self.doubtful[:_SHOWN_DOUBTS]
        ]
        if len(self.doubtful) > _SHOWN_DOUBTS:
            doubts.append(f"  and {len(self.doubtful) - _SHOWN_DOUBTS:,} more")
        return [counts, *doubts, *(f"  note: {note}" for note in self.notes)]

    def verdict(self) -> list[str]:
        """Return that the document holds no text, if so."""
        return [] if self.units else ["no text to translate was found; the file is copied"]


def read_file(path: Path, form: str | None, options: ReadOptions) -> Document | None:
    """Return the document in a file, or in standard input for "-"; None if it is plain text.

    Args:
        path: the file.
        form: name of its format; None recognises it by name and content.
        options: how it is read.

    Raises:
        DataError: the file cannot be read; see also `read_document`.
    """
    with damage_named(path), open(0 if str(path) == "-" else path, "rb", closefd=str(path) != "-") as file:
        head = file.read(_HEAD)
        if form is None and not head.startswith(b"PK") and format_of(str(path), head) is None:
            return None
        data = head + file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise DataError(f"{path} has more than {_LARGEST:,} bytes. Divide it.")
    return read_document(data, form or format_of(str(path), data) or "", options)


def texts_of(document: Document) -> list[str]:
    """Return the texts of the units, each once."""
    return list(dict.fromkeys(unit.text for unit in document.units))


def with_alignment(options: SearchOptions, document: Document) -> SearchOptions:
    """Return options of the search that give the word alignment, if a unit of the document needs it."""
    return replace(options, alignment=any(unit.is_tagged for unit in document.units), token_scores=False)


def write_document(
    document: Document, translate: Callable[[list[str]], Iterable[UnitFields]], *, bilingual: bool = False
) -> tuple[bytes, DocumentReport]:
    """Return the file of a document with its translations, and the report on it.

    Args:
        document: the document.
        translate: yields what the translation of each text needs , in order; equal texts are
            translated once.
        bilingual: whether source and translation stand beside each other, where the format can.
    """
    units, texts = document.units, texts_of(document)
    found = dict(zip(texts, translate(texts), strict=True))
    translated = [
        Translated(text, links, bool(doubts)) for text, links, doubts in (found[unit.text] for unit in units)
    ]
    data = document.write(translated, bilingual=bilingual)
    doubtful = [
        Doubt(place, unit.text, found[unit.text][2] or ["its placeholders or tags are not those of the text"])
        for place, unit, one in zip(document.places, units, translated, strict=True)
        if unit.is_doubtful(one)
    ]
    unchanged = sum(one.text == unit.text for unit, one in zip(units, translated, strict=True))
    return data, DocumentReport(len(units), unchanged, doubtful, document.notes)
