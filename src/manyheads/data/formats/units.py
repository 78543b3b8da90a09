"""Read the units of an XML document one by one, in bounded memory; damaged units are left out, XML bombs refused.

A unit is the element that holds a text in several languages. The text of each unit goes to one XML parser, which is
replaced after an error, and the text around the units to another: damage ends with its unit.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

from manyheads.data.formats.text import MEND, Skipped, Unit
from manyheads.data.lines import likely_encoding, wide_encoding
from manyheads.errors import DataError

_CODES = {"bpt", "ept", "it", "ph", "ut", "sub", "bx", "ex", "x", "sc", "ec", "cp"}
_LINE_BREAKS = {"lb", "x-lb", "xlf:lb", "pb", "xlf:pb"}  # kinds of native codes that part words
_KINDS = ("ctype", "type", "subType")  # attributes with the kind of a native code
_BLOCK = 1 << 16  # bytes
_GROUP = 64  # units, and blanks between them, that are read together
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


class UnitParser:
    """Collect the units of a document from the calls of an XML parser; base class of the parser of each format.

    Attributes:
        name: name of the file, for messages.
        skipped: counts of the units that are left out.
        units: units that are complete and not taken yet.
        header: text of the header, as "type: text" lines.
        path: names of the open elements, without namespaces.
        unread: characters fed to the XML parser since its last callback.
        line: line in which the current unit starts.
    """

    root = ""  # name of the outermost element
    unit = ""  # names of the elements that are units, as a regular expression
    around = ""  # names of the elements around units

    def __init__(self, name: str, skipped: Skipped) -> None:
        self.name = name
        self.skipped = skipped
        self.units: list[Unit] = []
        self.header: list[str] = []
        self.path: list[str] = []
        self.unread = self.size = self.defaults = 0
        self.line = 1
        self.text: list[str] | None = None
        self.text_depth = 0
        self.code_depth = 0

    def opened(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Handle the start of an element outside of a text; return whether to collect its text."""
        raise NotImplementedError

    def closed(self, name: str, text: str | None) -> None:
        """Handle the end of an element; `text` is the collected text, or None."""
        raise NotImplementedError

    def inside(self, name: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element within a text."""

    def left(self, depth: int) -> None:
        """Handle the end of an element within a text, which had this depth."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start tag of an element; called by the XML parser."""
        name = tag.rpartition("}")[2]
        self.path.append(name)
        if self.path == [name] != [self.root]:
            raise DataError(f"{self.name}: its outermost element is <{name}>, not <{self.root}>.")
        self.count(len(tag) + sum(map(len, attributes.values())))
        if len(self.path) > _DEEPEST:
            raise DataError(f"{self.name}: more than {_DEEPEST} elements within each other. It is not read.")
        if self.text is None:
            if self.opened(name, attributes):
                self.text, self.text_depth = [], len(self.path)
        elif name in _CODES:
            if any(attributes.get(kind) in _LINE_BREAKS for kind in _KINDS) and not self.code_depth:
                self.text.append(" ")
            self.code_depth = self.code_depth or len(self.path)
        else:
            self.inside(name, attributes)

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
        else:
            self.left(depth)

    def data(self, text: str) -> None:
        """Handle text; called by the XML parser."""
        self.count(len(text) if self.text is not None else 0)
        if self.text is not None and not self.code_depth:
            self.text.append(text)

    def declare(self, *declaration: object) -> None:
        """Refuse a document that declares too many attributes, whose defaults each element would repeat."""
        self.defaults += 1
        if self.defaults > _MOST_DEFAULTS:
            raise DataError(f"{self.name} declares more than {_MOST_DEFAULTS:,} attributes. It is not read.")

    def close(self) -> None:
        """Do nothing at the end of the document; called by the XML parser."""

    def count(self, size: int) -> None:
        """Count characters of the unit; raise `DataError` above a size that only XML bombs have."""
        self.unread, self.size = 0, self.size + size
        if self.size > _LARGEST_UNIT:
            raise _too_large(self.name)

    def reset(self, depth: int) -> None:
        """Forget the unit that is being read: all but the `depth` outermost elements."""
        del self.path[depth:]
        self.text, self.code_depth, self.size = None, 0, 0


class _Documents:
    """Feed the text of a document to two XML parsers: the units to one, the text around them to the other."""

    def __init__(self, parser: UnitParser, encoding: str) -> None:
        self.parser = parser
        self.encoding = encoding
        self.namespaces: dict[str, str] = {}
        self.outer = self.new_parser()
        self.outer.parser.specified_attributes = True  # without the defaults of a document type
        self.outer.parser.AttlistDeclHandler = parser.declare
        self.outer.parser.StartNamespaceDeclHandler = self.declare
        self.inner: Any = None
        self.good = 0
        self.damaged_bytes: bytes | None = None  # of the first place that does not fit the encoding

    def new_parser(self) -> Any:
        from defusedxml.ElementTree import DefusedXMLParser

        return DefusedXMLParser(target=self.parser, forbid_dtd=False, forbid_entities=True, forbid_external=True)

    def declare(self, prefix: str | None, address: str) -> None:
        """Note a namespace that is declared around the units."""
        self.namespaces[f"xmlns:{prefix}" if prefix else "xmlns"] = address or ""
        self.inner = None

    def read_around(self, text: str, unfit: re.Pattern[str]) -> None:
        """Read text around units; what it may not hold is replaced, and counted as damage."""
        text = unfit.sub(self.mend, text)
        self.parser.unread += len(text)
        self.outer.feed(text)
        if self.parser.unread > _LARGEST_UNIT:
            raise DataError(
                f"{self.parser.name}: {self.parser.unread:,} bytes without an element or text. It is not read."
            )

    def mend(self, match: re.Match[str]) -> str:
        """Count the damage of something unfit; return its replacement."""
        line = self.parser.line + match.string.count("\n", 0, match.start())
        self.note_damage(match[0], line, _describe(match[0], self.encoding), "mended around units")
        return "?"

    def read_units(self, texts: list[str]) -> list[Unit]:
        """Return the pairs of whole units with blanks between them, read together; one by one after an error."""
        from defusedxml.ElementTree import ParseError

        parser, joined = self.parser, "".join(texts)
        if not (texts and parser.path):
            return [pair for text in texts for pair in self.read_unit(text)]
        self.begin_units()
        depth, before = len(parser.path), parser.skipped.counts.copy()
        with suppress(ParseError, UnicodeEncodeError):
            self.inner.feed(joined)
            if len(parser.path) == depth:
                units, parser.units, parser.size = parser.units, [], 0
                parser.line += joined.count("\n")
                self.good += len(texts) - sum(map(str.isspace, texts))
                return units
        self.forget(depth, before)
        units = []
        for text in texts:
            units += [] if text.isspace() else self.read_unit(text)
            parser.line += text.count("\n")
        return units

    def begin_units(self) -> None:
        """Open a parser for units, with the namespaces around them."""
        if self.inner is None:
            depth, self.inner = len(self.parser.path), self.new_parser()
            declared = "".join(f' {name}="{_escape(address)}"' for name, address in self.namespaces.items())
            self.inner.feed(f"<units{declared}>")
            self.parser.reset(depth)

    def forget(self, depth: int, counts: Counter[str]) -> None:
        """Close the parser for units after an error, with what it found since there were these counts."""
        self.inner = None
        self.parser.reset(depth)
        self.parser.units, self.parser.skipped.counts = [], counts

    def read_unit(self, text: str) -> list[Unit]:
        """Return the pairs of a unit; none if it is damaged."""
        from defusedxml.ElementTree import ParseError

        parser, reason = self.parser, ""
        depth, before = len(parser.path), parser.skipped.counts.copy()
        if not depth:
            self.outer.feed(text)  # raises the error of a document with another root
        self.begin_units()
        try:
            self.inner.feed(text)
            reason = "" if len(parser.path) == depth else "it has no end tag"
        except UnicodeEncodeError:
            reason = _describe("\udc80", self.encoding)
        except ParseError as error:
            found = _UNFIT_CHARACTER.search(text) or _UNFIT.search(text)
            reason = _describe(found[0], self.encoding) if found else str(error).partition(":")[0]
        if not reason:
            self.good += 1
            units, parser.units, parser.size = parser.units, [], 0
            return units
        self.forget(depth, before)
        self.note_damage(text, parser.line, reason)
        return []

    def note_damage(self, text: str, line: int, reason: str, kind: str = "damaged") -> None:
        """Count damage; raise `DataError` if the request is strict, or most of many units are damaged."""
        skipped, name = self.parser.skipped, self.parser.name
        if self.damaged_bytes is None and re.search("[\ud800-\udfff]", text):
            self.damaged_bytes = text.encode(self.encoding, "surrogateescape")
        skipped.add_damage(name, f"line {line:,}", reason, kind)
        if skipped.counts["damaged"] % _DAMAGE_CHECKED == 0:
            skipped.check(name, self.good, self.cure())

    def close(self) -> None:
        self.outer.close()
        self.parser.skipped.check(self.parser.name, self.good, self.cure())

    def cure(self) -> str:
        if self.damaged_bytes is None:
            return MEND
        if self.encoding != "utf-8":
            return f"It has bytes that are none of its encoding, {self.encoding}. {MEND}"
        raw = re.sub(rb"^[\x00-\x7f]+", b"", self.damaged_bytes).partition(b"<")[0]
        guess = likely_encoding(raw)
        return f"It has bytes that are no UTF-8. If it is {guess}, convert it: iconv -f {guess} -t UTF-8."


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _describe(text: str, encoding: str) -> str:
    """Return a description of a character, or a reference, that no XML may hold."""
    if text.startswith("&"):
        return f'"{text}" stands for nothing' if len(text) > 1 else 'a "&" that is not written as "&amp;"'
    if re.search("[\ud800-\udfff]", text):
        return f"bytes that are none of its encoding, {encoding}"
    return f"the control character U+{ord(text[0]):04X}"


def _too_large(name: str) -> DataError:
    """Return the error for a unit that only XML bombs have."""
    return DataError(f"{name}: a unit has more than {_LARGEST_UNIT:,} characters. It is not read.")


def parsed_units(stream: io.BufferedReader, parser: UnitParser) -> Iterator[Unit]:
    """Yield the units of a document; damaged ones are counted, and left out.

    Raises:
        DataError: the document is no XML, a bomb, or most of it is damaged; with `Skipped.strict`, any damage.
    """
    from defusedxml.common import DefusedXmlException, EntitiesForbidden
    from defusedxml.ElementTree import ParseError

    head = stream.peek(_BLOCK)[:_BLOCK]
    encoding = _encoding_of(head, parser.name)
    documents = _Documents(parser, encoding)
    try:
        group: list[str] = []
        for text, kind in _pieces(_decode(stream, encoding), parser):
            if kind == "unit" or (group and text.isspace()):
                group.append(text)
                if len(group) < _GROUP:
                    continue
                text = ""
            yield from documents.read_units(group)
            group = []
            if kind == "broken":
                yield from documents.read_unit(text)
            elif text:
                documents.read_around(text, _UNFIT if kind == "around" else _UNFIT_CHARACTER)
            parser.line += text.count("\n")
        yield from documents.read_units(group)
        documents.close()
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
        message = str(error).partition(":")[0]
        raise DataError(
            f"{parser.name} is no XML that can be read: {message}, line {parser.line:,}. {documents.cure()}"
        ) from error


def _pieces(blocks: Iterator[str], parser: UnitParser) -> Iterator[tuple[str, str]]:
    """Yield the text of a document in order, with its kind: "unit", "broken" for a part of one, "around", "raw".

    In "raw" text, such as comments, "&" is text. Borders within comments and CDATA sections divide nothing.

    Raises:
        DataError: a unit has too many characters.
    """
    others = "|".join(re.escape(beginning[1:]) for beginning in _ENDS)
    border = re.compile(
        rf"<(?:{others}|(?P<end>/(?:[\w.-]+:)?(?:{parser.unit})\s*>)"
        rf"|(?P<begin>(?:[\w.-]+:)?(?:{parser.unit})(?=[\s/>]))|/?(?:[\w.-]+:)?(?:{parser.around})(?=[\s/>]))"
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
            raise _too_large(parser.name)
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
