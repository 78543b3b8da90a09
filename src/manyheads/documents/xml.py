"""The tags and texts of an XML file, with their places.

The XML parser of Python checks that the file is well-formed; this module then finds the places of its tags, which
the parser does not tell. Entities are refused: those of a stranger's file may be bombs, or name other files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Literal, NamedTuple
from xml.parsers import expat

from manyheads.errors import DataError

_TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[(?P<cdata>.*?)\]\]>|<\?.*?\?>|<!DOCTYPE(?:[^\[>\"']|\"[^\"]*\"|'[^']*'|\[.*?\]\s*(?=>))*>"
    r"|<(?P<closing>/?)(?P<name>[^\s/>]+)(?P<attributes>[^>\"']*(?:(?:\"[^\"]*\"|'[^']*')[^>\"']*)*)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ENCODING = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)""")

Kind = Literal["open", "close", "empty", "text", "other"]


class XmlToken(NamedTuple):
    """A piece of an XML file.

    Attributes:
        kind: an opening tag, a closing tag, an element without content (`<x/>`), text, or anything else: a comment,
            a processing instruction, a document type.
        start, end: its offsets.
        name: name of the element without its prefix; "" for text and the like.
        text: for text and CDATA sections, the text without references; for a tag, its attributes as written.
        attributes_start: offset of the attributes.
        prefix: prefix of the name with its colon; "" for none.
    """

    kind: Kind
    start: int
    end: int
    name: str = ""
    text: str = ""
    attributes_start: int = 0
    prefix: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """Return the values of the attributes, by their names with their prefixes."""
        return {match[1]: unescape(match[match.lastindex or 2]) for match in _ATTRIBUTE.finditer(self.text)}

    @property
    def attribute_spans(self) -> dict[str, tuple[int, int]]:
        """Return the offsets in the file of the value of each attribute, without its quotes."""
        first = self.attributes_start
        return {
            match[1]: (first + match.start(match.lastindex or 2), first + match.end(match.lastindex or 2))
            for match in _ATTRIBUTE.finditer(self.text)
        }


def declared_encoding(data: bytes) -> str:
    """Return the encoding that an XML declaration names, in lower case; "utf-8" if it names none."""
    match = _ENCODING.match(data)
    return match[1].decode().lower() if match else "utf-8"


def check_xml(text: str, name: str) -> None:
    """Check that a text is well-formed XML.

    Raises:
        DataError: it is not, or it declares entities.
    """

    def refuse(entity: str, *_: object) -> None:
        raise DataError(f'{name} declares the entity "{entity}", as bombs do. It is not read.')

    parser = expat.ParserCreate(encoding="utf-8")
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise DataError(
            f"{name} is no well-formed XML: {expat.ErrorString(error.code)}, line {error.lineno:,}."
        ) from None


def xml_tokens(text: str) -> Iterator[XmlToken]:
    """Yield the pieces of well-formed XML in order; together they are the whole text."""
    position = 0
    for match in _TAG.finditer(text):
        if position < match.start():
            yield XmlToken("text", position, match.start(), text=unescape(text[position : match.start()]))
        position = match.end()
        if match["name"]:
            kind: Kind = "close" if match["closing"] else "empty" if match["attributes"].endswith("/") else "open"
            prefix, colon, name = match["name"].rpartition(":")
            start = match.start("attributes")
            yield XmlToken(kind, *match.span(), name, match["attributes"], start, f"{prefix}{colon}")
        elif match["cdata"] is not None:
            yield XmlToken("text", *match.span(), text=match["cdata"])
        else:
            yield XmlToken("other", *match.span())
    if position < len(text):
        yield XmlToken("text", position, len(text), text=unescape(text[position:]))
