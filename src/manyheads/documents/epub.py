"""Read books in EPUB 2 and 3: chapters in the order in which they are read, navigation, title and description."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from manyheads.documents.container import Container, language_setter
from manyheads.documents.document import Document, ReadOptions
from manyheads.documents.html import html_readers
from manyheads.documents.runs import paragraph_readers
from manyheads.documents.units import Part
from manyheads.documents.xml import xml_tokens
from manyheads.errors import DataError

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_OF_FONTS = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}
_XHTML, _NCX = "application/xhtml+xml", "application/x-dtbncx+xml"
_LANGUAGES = [
    r"(<[^<>]*\sxml:lang=[\"'])([^\"'<>]*)",
    r"(<[^<>]*\slang=[\"'])([^\"'<>]*)",
    r"(<dc:language\b[^<>]*>\s*)([^<>\s]*)",
]


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document in the bytes of an epub file."""
    container = Container(data, options.name)
    encryption = container.xml(_ENCRYPTION) if _ENCRYPTION in container.names else ""
    methods = {t.attributes.get("Algorithm") for t in xml_tokens(encryption) if t.name == "EncryptionMethod"}
    if not methods <= _OF_FONTS:
        raise DataError(f"{options.name} is protected against copying (DRM). Ask its seller for an open book.")
    roots = [token.attributes for token in xml_tokens(container.xml(_CONTAINER)) if token.name == "rootfile"]
    package = roots[0].get("full-path", "") if roots else ""
    chapters, contents = _members(container.xml(package), posixpath.dirname(package))
    parts = [
        Part(container.text(member), html_readers(options), member)
        for member in chapters
        if member in container.names
    ]
    for member, names in [*((member, {"text"}) for member in contents), (package, {"dc:title", "dc:description"})]:
        text = container.xml(member)
        parts.append(Part(text, paragraph_readers(text, names), member))
    missing = [f"{member}, which is missing" for member in chapters if member not in container.names]
    return container.document(parts, language_setter(_LANGUAGES, options), [package], missing)


def _members(package: str, folder: str) -> tuple[list[str], list[str]]:
    """Return the members with chapters, in the order of reading, and those with a table of contents of EPUB 2."""
    items: dict[str, tuple[str, str]] = {}  # id -> member, media type
    order, navigation = list[str](), list[str]()
    for token in xml_tokens(package):
        values = token.attributes if token.kind != "close" else {}
        if token.name == "item" and "href" in values:
            member = posixpath.normpath(posixpath.join(folder, unquote(values["href"])))
            items[values.get("id", "")] = member, values.get("media-type", "")
            navigation += [values.get("id", "")] * ("nav" in values.get("properties", "").split())
        elif token.name == "itemref":
            order.append(values.get("idref", ""))
    chosen = [items[identity] for identity in dict.fromkeys([*order, *navigation]) if identity in items]
    chapters = dict.fromkeys(member for member, kind in chosen if kind == _XHTML)
    return list(chapters), [member for member, kind in items.values() if kind == _NCX]
