"""Read TMX 1.4, XLIFF 1.2 and XLIFF 2 as a stream: one unit is held in memory, and XML bombs are refused.

Text in `<hi>`, `<g>`, `<mrk>` and `<pc>` is kept. The content of the elements of native codes, such as `<ph>` and
`<bpt>`, is removed without a replacement.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from manyheads.data.formats.text import LICENCE, ORIGIN, ParallelText, TextRequest, Unit, pairs_of_units, stated
from manyheads.data.lines import likely_encoding, wide_encoding
from manyheads.errors import DataError

__all__ = ["read_tmx", "read_xliff"]

CODES = {"bpt", "ept", "it", "ph", "ut", "sub", "bx", "ex", "x", "sc", "ec", "cp"}
BLOCK = 1 << 16  # bytes
LARGEST_UNIT = 1 << 20  # characters of a unit in all its languages, or bytes without an element or text
MOST_DEFAULTS = 1_000  # attributes that the document type declares
DECLARED = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)""")
NATIVE = {"utf-8", "utf-16", "ascii", "iso8859-1"}  # encodings of the XML parser, by their names in Python
DEEPEST = 256  # elements within each other
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
UNTRANSLATED = {"new", "needs-translation", "initial"}  # states of XLIFF


class UnitParser:
    """Collect the units of a document from the calls of an XML parser; base class of the parser of each format.

    Attributes:
        name: name of the file, for messages.
        units: units that are complete and not taken yet.
        header: text of the header, as "type: text" lines.
        path: names of the open elements, without namespaces.
        unit: the unit that is being read.
        unread: bytes fed to the XML parser since its last callback.
    """

    root = ""  # name of the outermost element

    def __init__(self, name: str) -> None:
        self.name = name
        self.units: deque[Unit] = deque()
        self.header: list[str] = []
        self.path: list[str] = []
        self.unit: Unit = {}
        self.unread = self.size = self.defaults = 0
        self.text: list[str] | None = None
        self.text_depth = 0
        self.code_depth = 0

    def opened(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Handle the start of an element outside of a text; return whether to collect its text."""
        raise NotImplementedError

    def closed(self, name: str, text: str | None) -> None:
        """Handle the end of an element; `text` is the collected text, or None."""
        raise NotImplementedError

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start tag of an element; called by the XML parser."""
        name = tag.rpartition("}")[2]
        self.path.append(name)
        if self.path == [name] != [self.root]:
            raise DataError(f"{self.name}: its outermost element is <{name}>, not <{self.root}>.")
        self.count(len(tag) + sum(map(len, attributes.values())))
        if len(self.path) > DEEPEST:
            raise DataError(f"{self.name}: more than {DEEPEST} elements within each other. It is not read.")
        if self.text is not None:
            if name in CODES and not self.code_depth:
                self.code_depth = len(self.path)
        elif self.opened(name, attributes):
            self.text, self.text_depth = [], len(self.path)

    def end(self, tag: str) -> None:
        """Handle the end tag of an element; called by the XML parser."""
        depth, name = len(self.path), self.path.pop()
        if depth == self.code_depth:
            self.code_depth = 0
        if self.text is None:
            self.closed(name, None)
        elif depth == self.text_depth:
            text, self.text = "".join(self.text), None
            self.closed(name, text)

    def data(self, text: str) -> None:
        """Handle text; called by the XML parser."""
        self.count(len(text) if self.text is not None else 0)
        if self.text is not None and not self.code_depth:
            self.text.append(text)

    def declare(self, *declaration: object) -> None:
        """Refuse a document that declares too many attributes, whose defaults each element would repeat."""
        self.defaults += 1
        if self.defaults > MOST_DEFAULTS:
            raise DataError(f"{self.name} declares more than {MOST_DEFAULTS:,} attributes. It is not read.")

    def close(self) -> None:
        """Do nothing at the end of the document; called by the XML parser."""

    def count(self, size: int) -> None:
        """Count characters of the unit; raise `DataError` above a size that only XML bombs have."""
        self.unread, self.size = 0, self.size + size
        if self.size > LARGEST_UNIT:
            raise DataError(f"{self.name}: a unit has more than {LARGEST_UNIT:,} characters. It is not read.")

    def complete(self) -> None:
        """Add the current unit to the complete ones, and begin another."""
        self.units.append(self.unit)
        self.unit, self.size = {}, 0


class TmxParser(UnitParser):
    """Collect the `<tu>` of a TMX document; the first of several `<tuv>` in a language is used."""

    root = "tmx"
    language = kind = ""

    def opened(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Store the language of a `<tuv>`; collect the text of `<seg>`, header notes and properties."""
        if name == "tuv":
            self.language = attributes.get(LANGUAGE) or attributes.get("lang") or ""
        self.kind = attributes.get("type", "note")
        return name == "seg" or (name in ("prop", "note") and self.path[-2:-1] == ["header"])

    def closed(self, name: str, text: str | None) -> None:
        """Keep the text of a `<seg>` in the unit."""
        if name == "seg":
            self.unit.setdefault(self.language, text or "")
        elif name == "tu":
            self.complete()
        elif text is not None:
            self.header += [f"{self.kind.removeprefix('x-')}: {text}", text]
        elif name == "header":
            self.size = 0


class XliffParser(UnitParser):
    """Collect the `<trans-unit>` of XLIFF 1.2 and the `<segment>` of XLIFF 2; proposals and notes are left out."""

    root = "xliff"
    source = target = state = ""

    def opened(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Store languages and the state of a translation; collect the text of `<source>` and `<target>`."""
        if name == "xliff":
            version = attributes.get("version", "")
            if version not in ("1.0", "1.1", "1.2") and not version.startswith("2."):
                raise DataError(f'{self.name} is XLIFF of version "{version}". Known are 1.2 and 2.0.')
            self.source, self.target = attributes.get("srcLang", ""), attributes.get("trgLang", "")
        elif name == "file" and "source-language" in attributes:
            self.source, self.target = attributes["source-language"], attributes.get("target-language", "")
        elif name in ("segment", "trans-unit"):
            self.state = attributes.get("state", "")
        elif name == "target":
            self.state = attributes.get("state", self.state)
        return name in ("source", "target") and self.path[-2] in ("segment", "trans-unit")

    def closed(self, name: str, text: str | None) -> None:
        """Keep the text of a side in the unit."""
        if text is not None:
            language = self.source if name == "source" else self.target
            self.unit[language] = "" if name == "target" and self.state in UNTRANSLATED else text
        elif name in ("segment", "trans-unit"):
            self.unit.setdefault(self.target, "")
            self.complete()


def read_tmx(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read a TMX file; the licence is taken from a note or property of its header.

    Raises:
        DataError: the file is no TMX, or an XML bomb; while reading, it is broken, or lacks a language.
        UsageError: the languages are not clear.
    """
    return read_document(stream, request, TmxParser(name))


def read_xliff(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read an XLIFF file of version 1.2 or 2; a translation in a state such as "needs-translation" is left out.

    Raises:
        DataError, UsageError: as `read_tmx`.
    """
    return read_document(stream, request, XliffParser(name))


def read_document(stream: io.BufferedReader, request: TextRequest, parser: UnitParser) -> ParallelText:
    """Read a document with the parser of its format."""
    languages, pairs = pairs_of_units(parsed_units(stream, parser), request, parser.name)
    header = "\n".join(parser.header)
    return ParallelText(languages, pairs, stated(header, what=LICENCE), stated(header, what=ORIGIN))


def parsed_units(stream: io.BufferedReader, parser: UnitParser) -> Iterator[Unit]:
    """Feed a stream to an XML parser in blocks, and yield the units of each."""
    from defusedxml.common import DefusedXmlException, EntitiesForbidden
    from defusedxml.ElementTree import DefusedXMLParser, ParseError

    xml: Any = DefusedXMLParser(target=parser, forbid_dtd=False, forbid_entities=True, forbid_external=True)
    xml.parser.specified_attributes = True  # without the defaults of a document type
    xml.parser.AttlistDeclHandler = parser.declare
    head, block = stream.peek(BLOCK)[:BLOCK], b""
    decode = decoder(head, parser.name)
    try:
        for block in chain(iter(lambda: stream.read(BLOCK), b""), [b""]):
            parser.unread += len(block)
            xml.feed(decode(block, not block))
            if not block:
                xml.close()
            if parser.unread > LARGEST_UNIT:
                raise DataError(
                    f"{parser.name}: {parser.unread:,} bytes without an element or text. It is not read."
                )
            yield from parser.units
            parser.units.clear()
    except EntitiesForbidden as error:
        raise DataError(
            f'{parser.name} declares the entity "{error.name}", as bombs do. It is not read. If you trust the '
            "file, replace its own entities by their text first: xmllint --noent."
        ) from error
    except DefusedXmlException as error:
        raise DataError(f"{parser.name} refers to another file, which is not read ({error}).") from error
    except UnicodeError as error:
        raise DataError(
            f"{parser.name} has bytes that are none of its encoding: {' '.join(str(error).split())[:200]}."
        ) from error
    except ParseError as error:
        cure = "Mend the file, or get it again." if wide_encoding(head) else encoding_cure(block)
        raise DataError(f"{parser.name} is no XML that can be read: {error}. {cure}") from error


def decoder(head: bytes, name: str) -> Callable[[bytes, bool], bytes | str]:
    """Return a function that decodes the blocks of a document if the XML parser does not know its encoding.

    Args:
        head: first bytes of the document.
        name: name of the file, for messages.

    Raises:
        DataError: the encoding that the document declares is not known.
    """
    match = DECLARED.match(head)
    declared = match[1].decode() if match else "utf-8"
    if (wide_encoding(head) or "").startswith("UTF-32"):
        declared = "utf-32"
    try:
        encoding = codecs.lookup(declared).name
        "".encode(encoding)  # raises an error for codecs such as base64, which encode no text
    except (LookupError, UnicodeError) as error:
        raise DataError(
            f'{name} declares the encoding "{declared}", which is not known. Convert it to UTF-8 (iconv), and say '
            "so in its first line."
        ) from error
    if encoding in NATIVE:
        return lambda block, final: block
    incremental = codecs.getincrementaldecoder("cp949" if encoding == "euc_kr" else encoding)()
    return lambda block, final: incremental.decode(block, final)


def encoding_cure(block: bytes) -> str:
    """Return advice for a document without a byte order mark that is no XML: its encoding, if it is no UTF-8."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(block.lstrip(bytes(range(0x80, 0xC0))))
    except UnicodeDecodeError as error:
        guess = likely_encoding(error.object[error.start :].partition(b"<")[0])
        return f"It has bytes that are no UTF-8. If it is {guess}, convert it: iconv -f {guess} -t UTF-8."
    return "Mend the file, or get it again."
