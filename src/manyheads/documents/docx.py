"""Read Word documents (ECMA-376 part 1, section 17): text, headers, notes, comments, charts, alternative texts.

Data of charts and what fields show, such as page numbers, are not translated.
"""

from __future__ import annotations

import re

from manyheads.documents.container import Container, language_setter
from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.runs import alternative_texts, paragraph_readers
from manyheads.documents.units import Part
from manyheads.errors import DataError

_TEXTS = (  # in the order in which they are translated
    r"word/document\d*\.xml",
    r"word/(?:header|footer)\d*\.xml",
    r"word/(?:footnotes|endnotes|comments)\d*\.xml",
    r"word/(?:charts/chart|diagrams/data|diagrams/drawing)\d*\.xml",
)
_LANGUAGES = [
    *(rf'(<w:(?:lang|themeFontLang)\b[^<>]*\s{name}=")([^"<>]*)' for name in ("w:val", "w:eastAsia", "w:bidi")),
    r'(<a:\w+\b[^<>]*\slang=")([^"<>]*)',
]


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document in the bytes of a docx file."""
    container = Container(data, options.name)
    members = [name for pattern in _TEXTS for name in container.names if re.fullmatch(pattern, name)]
    if not members or not re.fullmatch(_TEXTS[0], members[0]):
        raise DataError(f"{options.name} has no word/document.xml: it is no docx file.")
    parts = [office_part(container, member) for member in members]
    return container.document(parts, language_setter(_LANGUAGES, options), ["word/styles.xml", "word/settings.xml"])


def office_part(container: Container, member: str) -> Part:
    """Return a member of Office Open XML with its alternative texts and paragraphs."""
    text = container.xml(member)
    line_break = "<w:r><w:br/></w:r>" if re.fullmatch(r"word/\w+\.xml", member) else "<a:br/>"
    return Part(text, [alternative_texts, *paragraph_readers(text, {"p"}, line_break)], member)
