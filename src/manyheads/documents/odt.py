"""Read OpenDocument texts and presentations (version 1.3): text, headers, notes, annotations, alternative texts."""

from __future__ import annotations

import re

from manyheads.documents.container import Container, language_setter
from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.runs import paragraph_readers
from manyheads.documents.units import Part
from manyheads.errors import DataError

_MANIFEST = "META-INF/manifest.xml"
_PARAGRAPHS = {"text:p", "text:h", "text:index-title-template"}
_ALTERNATIVES = {"svg:title", "svg:desc"}
# An automatic style that says in which session a text was written, and nothing on its looks.
_REVISION_STYLE = re.compile(
    r'<style:style style:name="([^"]*)" style:family="text"><style:text-properties'
    r'(?: (?:officeooo:(?:paragraph-)?rsid|fo:language|fo:country)="[^"]*")*/></style:style>'
)
_LANGUAGES = [r'(fo:language=")([^"<>]*)("\s+fo:country=")[^"<>]*']


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document in the bytes of an odt or odp file."""
    container = Container(data, options.name)
    if _MANIFEST in container.names and ":encryption-data" in container.text(_MANIFEST):
        raise DataError(f"{options.name} is encrypted. Save it without a password.")
    members = ["content.xml", *(name for name in container.names if name == "styles.xml")]
    parts = [_part(container, member) for member in members]
    return container.document(parts, language_setter(_LANGUAGES, options), members)


def _part(container: Container, member: str) -> Part:
    text = container.xml(member)
    plain = {f'<text:span text:style-name="{name}">' for name in _REVISION_STYLE.findall(text)}
    paragraphs = paragraph_readers(text, _PARAGRAPHS, "<text:line-break/>", plain=plain)
    return Part(text, [*paragraph_readers(text, _ALTERNATIVES), *paragraphs], member)
