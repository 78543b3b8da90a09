"""Read, translate and judge subtitles in tests."""

from __future__ import annotations

from typing import Any

import pysubs2

from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.formats import read_document
from manyheads.documents.units import Translated, Unit


def read(text: str, form: str, **options: Any) -> Document:
    return read_document(text.encode(), form, ReadOptions(**options))


def texts_of(text: str, form: str, **options: Any) -> list[str]:
    return [unit.text for unit in read(text, form, **options).units]


def unchanged(unit: Unit) -> Translated:
    return Translated(unit.text)


def in_capitals(unit: Unit) -> Translated:
    """Return a translation word by word."""
    return Translated(unit.text.upper())


def reversed_words(unit: Unit) -> Translated:
    words = unit.text.split()
    links = (f"{len(words) - 1 - word}-{word}" for word in range(len(words)))
    return Translated(" ".join(reversed(words)), " ".join(links))


def written(document: Document, translate: Any, *, bilingual: bool = False) -> str:
    return document.write([translate(unit) for unit in document.units], bilingual=bilingual).decode()


def judged(text: str, form: str) -> tuple[Any, ...]:
    """Return what pysubs2 finds in a file but for the texts: times, styles and fields of each subtitle."""
    subtitles = pysubs2.SSAFile.from_string(text, format_=form)
    events = [(event.start, event.end, event.type, event.style, event.name, event.layer) for event in subtitles]
    return events, {name: style.as_dict() for name, style in subtitles.styles.items()}, dict(subtitles.info)
