"""Read PowerPoint presentations (ECMA-376 part 1, section 19): slides in their order, notes, comments, charts.

Masters and layouts stay as they are: what they show on slides is decoration, and prompts that no audience sees.
"""

from __future__ import annotations

import posixpath
import re

from manyheads.documents.container import Container, language_setter
from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.docx import office_part
from manyheads.documents.runs import paragraph_readers
from manyheads.documents.units import Part
from manyheads.documents.xml import xml_tokens

_PRESENTATION = "ppt/presentation.xml"
_SLIDE = re.compile(r"ppt/slides/[^/]+")
_OF_SLIDE = re.compile(r"ppt/(?:notesSlides|comments|charts|diagrams)/(?!style|colors|quickStyle|layout)[^/]+\.xml")
_LANGUAGES = [r'(<a:\w+\b[^<>]*\slang=")([^"<>]*)']


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document in the bytes of a pptx file."""
    container = Container(data, options.name)
    members: dict[str, None] = {}  # in their order
    for slide in filter(_SLIDE.fullmatch, _related(container, _PRESENTATION)):
        members[slide] = None
        members.update(dict.fromkeys(filter(_OF_SLIDE.fullmatch, _related(container, slide))))
    parts = [_part(container, member) for member in members if member in container.names]
    return container.document(parts, language_setter(_LANGUAGES, options), [_PRESENTATION])


def _part(container: Container, member: str) -> Part:
    if not member.startswith("ppt/comments/comment"):
        return office_part(container, member)
    text = container.xml(member)
    return Part(text, paragraph_readers(text, {"p:text"}), member)


def _related(container: Container, member: str) -> list[str]:
    """Return the members that a member names (ECMA-376 part 2, section 9.3), in the order of their first use."""
    folder, name = posixpath.split(member)
    relations = f"{folder}/_rels/{name}.rels"
    related: dict[str, str] = {}
    for token in xml_tokens(container.xml(relations) if relations in container.names else ""):
        values = token.attributes if token.name == "Relationship" else {}
        if values.get("TargetMode") != "External" and "Target" in values:
            related[values.get("Id", "")] = posixpath.normpath(posixpath.join("/", folder, values["Target"]))[1:]
    used = re.findall(r'\sr:\w+="([^"]*)"', container.text(member))
    return [related[identity] for identity in dict.fromkeys([*used, *related]) if identity in related]
