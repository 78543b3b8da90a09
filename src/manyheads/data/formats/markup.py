"""Read TMX 1.4, XLIFF 1.2 and XLIFF 2 as a stream: one unit is held in memory.

Text in `<hi>`, `<g>`, `<mrk>` and `<pc>` is kept. The content of the elements of native codes, such as `<ph>` and
`<bpt>`, is removed without a replacement; a code that stands for a line break becomes a blank.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

from manyheads.data.formats.text import (
    LICENCE,
    ORIGIN,
    ParallelText,
    Skipped,
    TextRequest,
    Unit,
    find_statement,
    pairs_of_units,
)  # fmt: skip
from manyheads.data.formats.units import UnitParser, parsed_units
from manyheads.errors import DataError

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_UNTRANSLATED = {"new", "needs-translation", "initial"}  # states of XLIFF


class _TmxParser(UnitParser):
    """Collect the `<tu>` of a TMX document; the first of several `<tuv>` in a language is used."""

    root, unit, around = "tmx", "tu", "tmx|header|body"
    language = kind = ""

    def __init__(self, name: str, skipped: Skipped) -> None:
        super().__init__(name, skipped)
        self.texts: Unit = {}

    def opened(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Store the language of a `<tuv>`; collect the text of `<seg>`, header notes and properties."""
        if name == "tu":
            self.texts = {}
        elif name == "tuv":
            self.language = attributes.get(_LANGUAGE) or attributes.get("lang") or ""
        self.kind = attributes.get("type", "note")
        return name == "seg" or (name in ("prop", "note") and self.path[-2:-1] == ["header"])

    def closed(self, name: str, text: str | None) -> None:
        """Keep the text of a `<seg>` in the unit."""
        if name == "seg":
            self.texts.setdefault(self.language, text or "")
        elif name == "tu":
            self.units.append(self.texts)
        elif text is not None:
            self.header += [f"{self.kind.removeprefix('x-')}: {text}", text]


class _XliffParser(UnitParser):
    """Collect the segments of XLIFF: `<segment>` in version 2, and in version 1.2 a `<trans-unit>` or its segments.

    The segments of version 1.2 are `<mrk mtype="seg">` in `<seg-source>` and `<target>`, and belong together by
    their `mid`. Proposals, notes and texts that are not to be translated are left out.
    """

    root, unit, around = "xliff", "trans-unit|unit", "xliff|file|group|header|body"
    source = target = state = ""

    def __init__(self, name: str, skipped: Skipped) -> None:
        super().__init__(name, skipped)
        self.texts: dict[str, str] = {}  # element -> its text
        self.segments: dict[str, dict[str, str]] = {}  # element -> `mid` -> text
        self.languages: dict[str, str] = {}  # element -> its own language
        self.beginnings: dict[int, tuple[str, int]] = {}  # depth of a segment -> its `mid`, and parts before it
        self.translate: dict[int, bool] = {}  # depth of an element that says so -> whether to translate

    def opened(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Store languages and the state of a translation; collect the text of sources and targets."""
        depth = len(self.path)
        self.translate = {level: value for level, value in self.translate.items() if level < depth}
        if "translate" in attributes:
            self.translate[depth] = attributes["translate"] != "no"
        if name == "xliff":
            version = attributes.get("version", "")
            if version not in ("1.0", "1.1", "1.2") and not version.startswith("2."):
                raise DataError(f'{self.name} is XLIFF of version "{version}". Known are 1.2 and 2.0.')
            self.source, self.target = attributes.get("srcLang", ""), attributes.get("trgLang", "")
        elif name == "file" and "source-language" in attributes:
            self.source, self.target = attributes["source-language"], attributes.get("target-language", "")
        elif name in ("segment", "trans-unit"):
            self.state = attributes.get("state", "")
            self.texts, self.segments, self.languages, self.beginnings = {}, {}, {}, {}
        elif name not in ("source", "seg-source", "target") or self.path[-2] not in ("segment", "trans-unit"):
            return False
        elif name not in self.texts:  # the first of several targets
            if _LANGUAGE in attributes:
                self.languages[name] = attributes[_LANGUAGE]
            if name == "target":
                self.state = attributes.get("state", self.state)
            self.segments[name] = {}
            return True
        return False

    def inside(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begin a segment, apart from the text before it."""
        if name == "mrk" and attributes.get("mtype") == "seg" and self.text is not None:
            if self.text and not self.text[-1][-1:].isspace():
                self.text.append(" ")
            self.beginnings[len(self.path)] = attributes.get("mid", ""), len(self.text)

    def left(self, depth: int) -> None:
        if depth in self.beginnings and self.text is not None:
            mid, begin = self.beginnings.pop(depth)
            self.segments[self.path[self.text_depth - 1]].setdefault(mid, "".join(self.text[begin:]))

    def closed(self, name: str, text: str | None) -> None:
        """Keep the text of a side, or complete the unit."""
        if text is not None:
            self.texts[name] = text
        elif name in ("segment", "trans-unit"):
            self.complete()

    def complete(self) -> None:
        """Add the segments of a unit, or its whole text if its two sides are not divided alike."""
        if not self.translate.get(max(self.translate, default=0), True):
            self.skipped.counts["not to be translated"] += 1
            return
        source = self.languages.get("source", self.languages.get("seg-source", self.source))
        target = self.languages.get("target", self.target)
        done = self.state not in _UNTRANSLATED
        sources = self.segments.get("seg-source") or self.segments.get("source") or {}
        targets = self.segments.get("target", {})
        if sources.keys() & targets.keys():
            pairs = [(text, targets.get(mid, "")) for mid, text in sources.items()]
        else:
            pairs = [(self.texts.get("source", self.texts.get("seg-source", "")), self.texts.get("target", ""))]
        for first, second in pairs:
            self.units.append({source: first, target: second if done else ""})


def read_tmx(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read a TMX file; the licence is taken from a note or property of its header.

    Raises:
        DataError: the file is no TMX, or an XML bomb; while reading, it is broken, or lacks a language.
        UsageError: the languages are not clear.
    """
    return _read_document(stream, request, _TmxParser(name, Skipped(request.strict)))


def read_xliff(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read an XLIFF file of version 1.2 or 2; a translation in a state such as "needs-translation" is left out.

    Raises:
        DataError, UsageError: as `read_tmx`.
    """
    return _read_document(stream, request, _XliffParser(name, Skipped(request.strict)))


def _read_document(stream: io.BufferedReader, request: TextRequest, parser: UnitParser) -> ParallelText:
    languages, pairs = pairs_of_units(parsed_units(stream, parser), request, parser.name, parser.skipped)
    header = "\n".join(parser.header)
    return ParallelText(
        languages, pairs, find_statement(header, what=LICENCE), find_statement(header, what=ORIGIN), parser.skipped
    )
