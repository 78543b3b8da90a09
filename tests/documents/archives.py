"""Archives made for tests, and a translator that reverses the words of every text."""

from __future__ import annotations

import io
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from manyheads.documents.document import ReadOptions
from manyheads.documents.formats import read_document
from manyheads.documents.units import Translated, Unit


def archive(members: dict[str, str]) -> bytes:
    output = io.BytesIO()
    with ZipFile(output, "w") as file:
        for name, text in members.items():
            file.writestr(name, text, ZIP_STORED if name == "mimetype" else ZIP_DEFLATED)
    return output.getvalue()


def members_of(data: bytes) -> dict[str, str]:
    with ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name).decode(errors="replace") for name in file.namelist()}


def reverse_words(unit: Unit) -> Translated:
    words = unit.text.split()
    links = (f"{index}-{len(words) - 1 - index}" for index in range(len(words)))
    return Translated(" ".join(reversed(words)), " ".join(links))


def shout(unit: Unit) -> Translated:
    """Return the text of a unit in capitals."""
    return Translated(unit.text.upper(), " ".join(f"{index}-{index}" for index, _ in enumerate(unit.text.split())))


def reverse_document(data: bytes, form: str, *, source: str = "en", target: str = "de") -> bytes:
    """Return a document with its words reversed, after a check that its own texts give its own bytes."""
    document = read_document(data, form, ReadOptions("a file", source, target))
    assert document.write(Translated(unit.text) for unit in document.units) == data
    return document.write(map(reverse_words, document.units))


def texts_of(data: bytes, form: str) -> list[str]:
    return [unit.text for unit in read_document(data, form, ReadOptions()).units]
