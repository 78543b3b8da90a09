"""Read the units of an XML document one by one, in bounded memory; damaged units are left out, XML bombs refused.

A unit is the element that holds a text in several languages. Each unit is parsed by itself, and the text around the
units by another XML parser: damage ends with its unit.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator, Mapping
from html import escape
from itertools import chain
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from bitext.errors import DataError, require
from bitext.formats.text import MEND, Skipped, Unit
from bitext.languages import SENTENCE_ENDS, sentence_separator
from bitext.lines import likely_encoding, wide_encoding

INLINE_CODES = {"bpt", "ept", "it", "ph", "ut", "sub", "bx", "ex", "x", "sc", "ec", "cp"}
_LINE_BREAKS = {"lb", "x-lb", "xlf:lb", "pb", "xlf:pb"}  # kinds of native codes that part words
_KINDS = ("ctype", "type", "subType")  # attributes with the kind of a native code
# Native codes that part words: a line end, or a tag of HTML at which a block begins or ends.
_BREAK = re.compile(r"(?:\s*\n|\\[nrN]|<(?:br|hr|/?(?:p|div|li|ul|ol|t[rdh]|h[1-6]))\b[^<>]*>)+\s*", re.IGNORECASE)
_TAG, _JOINT = "\0", "\1"  # stand for a tag, and for what parts words; no text of XML has them
_JOINTS = re.compile(rf"(\s?)[{_TAG}{_JOINT}]*{_JOINT}[{_TAG}{_JOINT}]*(\s?)")
_SENTENCE_BORDERS = re.compile(rf"""(\w{{0,2}})([{SENTENCE_ENDS}]["'”“’‘»«›)\]」』）]*){_TAG}+(?=(\w))""")
_BLOCK = 1 << 16  # bytes
_LARGEST_UNIT = 1 << 20  # characters of a unit in all its languages, or bytes without an element or text
_MOST_DEFAULTS = 1_000  # attributes that the document type declares
_DEEPEST = 256  # elements within each other
_LONGEST_TAG = 256  # characters of a border that a block may cut
_DECLARED = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)""")
_UNFIT_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # what no XML may hold
_UNFIT = re.compile(
    rf"{_UNFIT_CHARACTER.pattern}|&(?!(?:#[0-9]+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos);)(?:#?\w{{1,32}};)?"
)
_ENDS = {
    "<!--": "-->",
    "<![CDATA[": "]]>",
    "<!DOCTYPE": "]",
}  # beginnings and ends of the parts in which "&" is text
_DAMAGE_CHECKED = 1_000  # damaged units after which a document may be refused


class UnitReader:
    """Read the units of a document, and what stands around them; base class of the reader of each format.

    An XML parser calls `start`, `end`, `data` and `close` for the text around the units.

    Attributes:
        name: name of the file, for messages.
        skipped: counts of the units that are left out.
        header: text of the header, as "type: text" lines.
        path: names of the open elements around units, without namespaces.
        unread: characters fed to the XML parser since its last call.
        line: line in which the current unit starts.
    """

    root = ""  # name of the outermost element
    unit = ""  # names of the elements that are units, as a regular expression
    around = ""  # names of the elements around units

    def __init__(self, name: str, skipped: Skipped) -> None:
        self.name = name
        self.skipped = skipped
        self.header: list[str] = []
        self.path: list[str] = []
        self.unread = self.defaults = 0
        self.line = 1

    def units_of(self, element: Element) -> Iterator[Unit]:
        """Yield the texts of an element that is a unit."""
        raise NotImplementedError

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start tag of an element."""
        self.path.append(local_name(tag))
        self.unread = 0
        if self.path[0] != self.root:
            raise DataError(f"{self.name}: its outermost element is <{self.path[0]}>, not <{self.root}>.")
        if len(self.path) > _DEEPEST:
            raise DataError(f"{self.name}: more than {_DEEPEST} elements within each other. It is not read.")

    def end(self, tag: str) -> None:
        """Handle the end tag of an element."""
        self.path.pop()
        self.unread = 0

    def data(self, text: str) -> None:
        """Handle text."""
        self.unread = 0

    def close(self) -> None:
        """Do nothing at the end of the document."""

    def declare(self, *declaration: object) -> None:
        """Refuse a document that declares too many attributes, whose defaults each element would repeat."""
        self.defaults += 1
        if self.defaults > _MOST_DEFAULTS:
            raise DataError(f"{self.name} declares more than {_MOST_DEFAULTS:,} attributes. It is not read.")


def local_name(tag: str) -> str:
    """Return the name of an element without its namespace."""
    return tag.rpartition("}")[2]


def text_of(element: Element, language: str) -> str:
    """Return the text of an element without native codes.

    Segments, sentences with tags between them, and texts on both sides of a code that stands for a line break are
    joined by a blank, without one in Chinese and Japanese.
    """
    parts: list[str] = []
    _add_text(element, parts)
    text, gap = "".join(parts), sentence_separator(language)
    text = _JOINTS.sub(lambda joint: joint[1] + joint[2] or gap, text.strip(_TAG + _JOINT))
    return _SENTENCE_BORDERS.sub(lambda border: border[1] + border[2] + gap * _begins(border), text).replace(
        _TAG, ""
    )


def _begins(border: re.Match[str]) -> bool:
    """Return whether a sentence begins behind a match of `_SENTENCE_BORDERS`: no initial, no small letter."""
    is_initial = len(border[1]) == 1 and border[1].isupper()
    return border[3].isalpha() and not border[3].islower() and not is_initial


def _add_text(element: Element, parts: list[str]) -> None:
    parts += filter(None, [element.text])
    for child in element:
        if local_name(child.tag) not in INLINE_CODES:
            parts.append(_JOINT if child.get("mtype") == "seg" else _TAG)
            _add_text(child, parts)
        elif any(child.get(kind) in _LINE_BREAKS for kind in _KINDS) or _BREAK.fullmatch(child.text or ""):
            parts.append(_JOINT)
        parts += filter(None, [_TAG, child.tail])


class _Document:
    """Feed the text around the units to one XML parser, and parse each unit by itself."""

    def __init__(self, reader: UnitReader, encoding: str) -> None:
        self.reader = reader
        self.encoding = encoding
        self.namespaces: dict[str, str] = {}
        etree = require("defusedxml.ElementTree", extra="readers", purpose=f"Reading {reader.name}")
        self.parser = etree.DefusedXMLParser(
            target=reader, forbid_dtd=False, forbid_entities=True, forbid_external=True
        )
        self.parser.parser.specified_attributes = True  # without the defaults of a document type
        self.parser.parser.AttlistDeclHandler = reader.declare
        self.parser.parser.StartNamespaceDeclHandler = self.declare
        self.good = 0
        self.damaged_bytes: bytes | None = None  # of the first place that does not fit the encoding

    def declare(self, prefix: str | None, address: str) -> None:
        """Note a namespace that is declared around the units."""
        self.namespaces[f"xmlns:{prefix}" if prefix else "xmlns"] = address or ""

    def read_around(self, text: str, unfit: re.Pattern[str]) -> None:
        """Read text around units; what it may not hold is replaced, and counted as damage."""
        text = unfit.sub(self.mend, text)
        self.reader.unread += len(text)
        self.parser.feed(text)
        if self.reader.unread > _LARGEST_UNIT:
            raise DataError(
                f"{self.reader.name}: {self.reader.unread:,} bytes without an element or text. It is not read."
            )

    def mend(self, match: re.Match[str]) -> str:
        """Count the damage of something unfit; return its replacement."""
        line = self.reader.line + match.string.count("\n", 0, match.start())
        self.note_damage(match[0], line, _describe(match[0], self.encoding), "mended around units")
        return "?"

    def read_unit(self, text: str) -> list[Unit]:
        """Return the texts of a unit; none if it is damaged."""
        if not self.reader.path:
            self.parser.feed(text)  # raises the error of a document with another root
        declared = "".join(f' {name}="{escape(address)}"' for name, address in self.namespaces.items())
        try:
            # Within an element there is no document type, and so no entity that could be a bomb.
            parsed = ElementTree.XML(f"<units{declared}>{text}\n</units>")
            units = [unit for element in parsed for unit in self.reader.units_of(element)]
        except RecursionError:
            reason = "too many elements within each other"
        except UnicodeEncodeError:
            reason = _describe("\udc80", self.encoding)
        except ElementTree.ParseError as error:
            found = _UNFIT_CHARACTER.search(text) or _UNFIT.search(text)
            reason = _describe(found[0], self.encoding) if found else str(error).partition(":")[0]
            if not found and error.position[0] == text.count("\n") + 2:
                reason = "it has no end tag"
        else:
            self.good += 1
            return units
        self.note_damage(text, self.reader.line, reason)
        return []

    def note_damage(self, text: str, line: int, reason: str, kind: str = "damaged") -> None:
        """Count damage; raise `DataError` if the request is strict, or most of many units are damaged."""
        skipped, name = self.reader.skipped, self.reader.name
        if self.damaged_bytes is None and re.search("[\ud800-\udfff]", text):
            self.damaged_bytes = text.encode(self.encoding, "surrogateescape")
        skipped.add_damage(name, f"line {line:,}", reason, kind)
        if skipped.counts["damaged"] % _DAMAGE_CHECKED == 0:
            skipped.check(name, self.good, self.cure())

    def close(self) -> None:
        self.parser.close()
        self.reader.skipped.check(self.reader.name, self.good, self.cure())

    def cure(self) -> str:
        if self.damaged_bytes is None:
            return MEND
        if self.encoding != "utf-8":
            return f"It has bytes that are none of its encoding, {self.encoding}. {MEND}"
        raw = re.sub(rb"^[\x00-\x7f]+", b"", self.damaged_bytes).partition(b"<")[0]
        guess = likely_encoding(raw)
        return f"It has bytes that are no UTF-8. If it is {guess}, convert it: iconv -f {guess} -t UTF-8."


def _describe(text: str, encoding: str) -> str:
    """Return a description of a character, or a reference, that no XML may hold."""
    if text.startswith("&"):
        return f'"{text}" stands for nothing' if len(text) > 1 else 'a "&" that is not written as "&amp;"'
    if re.search("[\ud800-\udfff]", text):
        return f"bytes that are none of its encoding, {encoding}"
    return f"the control character U+{ord(text[0]):04X}"


def parsed_units(stream: io.BufferedReader, reader: UnitReader) -> Iterator[Unit]:
    """Yield the units of a document; damaged ones are counted, and left out.

    Raises:
        MissingExtraError: the package defusedxml is not installed.
        DataError: the document is no XML, a bomb, or most of it is damaged; with `Skipped.strict`, any damage.
    """
    refusals = require("defusedxml.common", extra="readers", purpose=f"Reading {reader.name}")
    encoding = _encoding_of(stream.peek(_BLOCK)[:_BLOCK], reader.name)
    document = _Document(reader, encoding)
    try:
        for text, kind in _pieces(_decode(stream, encoding), reader):
            if kind in ("unit", "broken"):
                yield from document.read_unit(text)
            else:
                document.read_around(text, _UNFIT if kind == "around" else _UNFIT_CHARACTER)
            reader.line += text.count("\n")
        document.close()
    except refusals.EntitiesForbidden as error:
        raise DataError(
            f'{reader.name} declares the entity "{error.name}", as bombs do. It is not read. If you trust the '
            "file, replace its own entities by their text first: xmllint --noent."
        ) from error
    except refusals.DefusedXmlException as error:
        raise DataError(f"{reader.name} refers to another file, which is not read ({error}).") from error
    except UnicodeError as error:
        raise DataError(
            f"{reader.name} has bytes that are none of its encoding: {' '.join(str(error).split())[:200]}."
        ) from error
    except ElementTree.ParseError as error:
        message = str(error).partition(":")[0]
        raise DataError(
            f"{reader.name} is no XML that can be read: {message}, line {reader.line:,}. {document.cure()}"
        ) from error


def _pieces(blocks: Iterator[str], reader: UnitReader) -> Iterator[tuple[str, str]]:
    """Yield the text of a document in order, with its kind: "unit", "broken" for a part of one, "around", "raw".

    In "raw" text, such as comments, "&" is text. Borders within comments and CDATA sections divide nothing.

    Raises:
        DataError: a unit has too many characters.
    """
    others = "|".join(re.escape(beginning[1:]) for beginning in _ENDS)
    border = re.compile(
        rf"<(?:{others}|(?P<end>/(?:[\w.-]+:)?(?:{reader.unit})\s*>)"
        rf"|(?P<begin>(?:[\w.-]+:)?(?:{reader.unit})(?=[\s/>]))|/?(?:[\w.-]+:)?(?:{reader.around})(?=[\s/>]))"
    )
    text, kind, closing, at = "", "around", "", 0  # `at` is where the search goes on
    for block in blocks:
        text += block
        start = 0
        while True:
            if closing:
                found = text.find(closing, at)
                if found < 0:
                    at = max(at, len(text) - len(closing))
                    break
                at, closing = found + len(closing), ""
                if kind == "raw":
                    yield text[start:at], kind
                    start, kind = at, "around"
            match = border.search(text, at)
            if match is None:
                at = max(at, len(text) - _LONGEST_TAG)
                break
            at = match.end()
            closing = _ENDS.get(match[0], "")
            if closing == "]" and "[" not in text[at : text.find(">", at)]:
                closing = ">"
            if kind == "unit" and (closing or match["end"]):
                if match["end"]:
                    yield text[start:at], kind
                    start, kind = at, "around"
                continue
            if start < match.start():
                yield text[start : match.start()], "broken" if kind == "unit" else kind
            start = match.start()
            if match["end"]:  # without a beginning
                yield match[0], "broken"
                start = at
            kind = "raw" if closing else "unit" if match["begin"] else "around"
        if kind != "unit":
            stop = max(start, min(at, len(text) - _LONGEST_TAG) if kind == "around" else at)
            reference = text.rfind("&", max(start, stop - 40), stop)  # not to be divided
            stop = stop if reference < 0 else reference
            if start < stop:
                yield text[start:stop], kind
                start = stop
        text, at = text[start:], max(0, at - start)
        if kind == "unit" and len(text) > _LARGEST_UNIT:
            raise DataError(f"{reader.name}: a unit has more than {_LARGEST_UNIT:,} characters. It is not read.")
    if text:
        yield text, "broken" if kind == "unit" else kind


def _decode(stream: io.BufferedReader, encoding: str) -> Iterator[str]:
    """Yield the text of a stream in blocks; a byte that is none of its encoding becomes a surrogate."""
    wide = encoding.startswith(("utf-16", "utf-32"))
    decoder = codecs.getincrementaldecoder(encoding)("strict" if wide else "surrogateescape")
    first = True
    for block in chain(iter(lambda: stream.read(_BLOCK), b""), [b""]):
        text = decoder.decode(block, not block)
        yield text.removeprefix("\ufeff") if first else text
        first = first and not text


def _encoding_of(head: bytes, name: str) -> str:
    """Return the name of the encoding of a document, by its byte order mark, else as its first bytes declare it.

    Raises:
        DataError: the encoding is not known.
    """
    wide = (wide_encoding(head) or "").partition(" ")[0].lower()
    match = _DECLARED.match(head)
    declared = wide or (match[1].decode() if match and not head.startswith(codecs.BOM_UTF8) else "utf-8")
    try:
        encoding = codecs.lookup(declared).name
        "".encode(encoding)  # raises an error for codecs such as base64, which encode no text
    except (LookupError, UnicodeError) as error:
        raise DataError(
            f'{name} declares the encoding "{declared}", which is not known. Convert it to UTF-8 (iconv), and say '
            "so in its first line."
        ) from error
    if not wide and encoding.startswith(("utf-16", "utf-32")):  # its declaration could not be read then
        return "utf-8"
    return "cp949" if encoding == "euc_kr" else encoding
