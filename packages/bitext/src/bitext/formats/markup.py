"""Read TMX 1.4, XLIFF 1.2 and XLIFF 2 as a stream: one unit is held in memory.

Text in `<hi>`, `<g>`, `<mrk>` and `<pc>` is kept. The content of the elements of native codes, such as `<ph>` and
`<bpt>`, is removed without a replacement; a code that stands for a line break becomes a blank (`text_of`).
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from bitext.errors import DataError
from bitext.formats.text import (
    LICENCE,
    ORIGIN,
    ParallelText,
    Skipped,
    TextRequest,
    Unit,
    find_statement,
    pairs_of_units,
)
from bitext.formats.units import UnitReader, local_name, parsed_units, text_of
from bitext.languages import sentence_separator

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_LONGEST_NOTE = 1 << 16  # characters of a note that are kept, about
UNTRANSLATED_STATES = {"new", "needs-translation", "initial"}  # states of XLIFF


class _TmxReader(UnitReader):
    """Read the `<tu>` of a TMX document; the first of several `<tuv>` in a language is used."""

    root, unit, around = "tmx", "tu", "tmx|header|body"
    kind, note = "", ""  # of a note or property of the header

    def units_of(self, element: Element) -> Iterator[Unit]:
        texts: Unit = {}
        for variant in element:
            language = variant.get(_LANGUAGE) or variant.get("lang") or ""
            segments = [text_of(segment, language) for segment in variant if local_name(segment.tag) == "seg"]
            if segments:
                texts.setdefault(language, sentence_separator(language).join(segments))
        yield texts

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        super().start(tag, attributes)
        self.kind, self.note = attributes.get("type", "note").removeprefix("x-"), ""

    def data(self, text: str) -> None:
        super().data(text)
        if self.path[-2:-1] == ["header"] and len(self.note) < _LONGEST_NOTE:
            self.note += text

    def end(self, tag: str) -> None:
        super().end(tag)
        if self.note:
            self.header += [f"{self.kind}: {self.note}", self.note]
        self.note = ""


class _XliffReader(UnitReader):
    """Read the segments of XLIFF: `<segment>` in version 2, and in version 1.2 a `<trans-unit>` or its segments.

    The segments of version 1.2 are `<mrk mtype="seg">` in `<seg-source>` and `<target>`, and belong together by
    their `mid`. Proposals, notes and texts that are not to be translated are left out.
    """

    root, unit, around = "xliff", "trans-unit|unit", "xliff|file|group|header|body"
    source = target = ""

    def __init__(self, name: str, skipped: Skipped) -> None:
        super().__init__(name, skipped)
        self.translate = [True]  # whether to translate, by the open elements around units

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Store languages, and whether to translate."""
        super().start(tag, attributes)
        self.translate.append(is_translated(attributes, self.translate[-1]))
        if self.path == ["xliff"]:
            version = attributes.get("version", "")
            if version not in ("1.0", "1.1", "1.2") and not version.startswith("2."):
                raise DataError(f'{self.name} is XLIFF of version "{version}". Known are 1.2 and 2.0.')
            self.source, self.target = attributes.get("srcLang", ""), attributes.get("trgLang", "")
        elif self.path[-1] == "file" and "source-language" in attributes:
            self.source, self.target = attributes["source-language"], attributes.get("target-language", "")

    def end(self, tag: str) -> None:
        super().end(tag)
        self.translate.pop()

    def units_of(self, element: Element) -> Iterator[Unit]:
        """Yield the segments of a unit, or its whole text if its two sides are not divided alike."""
        translate = is_translated(element.attrib, self.translate[-1])
        whole = local_name(element.tag) == "trans-unit"
        for segment in [element] if whole else element:
            if not whole and local_name(segment.tag) != "segment":
                continue
            if is_translated(segment.attrib, translate):
                yield from self.pairs_of(segment)
            else:
                self.skipped.counts["not to be translated"] += 1

    def pairs_of(self, segment: Element) -> Iterator[Unit]:
        """Yield the pairs of a segment, by their language."""
        sides: dict[str, Element] = {}
        for side in segment:
            sides.setdefault(local_name(side.tag), side)  # the first of several targets
        nothing = Element("nothing")
        target, source = sides.get("target", nothing), sides.get("source", sides.get("seg-source", nothing))
        languages = source.get(_LANGUAGE, self.source), target.get(_LANGUAGE, self.target)
        segmented = sides.get("seg-source", nothing)
        divided = _divisions_of(segmented, languages[0]) or _divisions_of(source, languages[0])
        targets = _divisions_of(target, languages[1])
        done = target.get("state", segment.get("state", "")) not in UNTRANSLATED_STATES
        pairs = [(text_of(source, languages[0]), text_of(target, languages[1]))]
        if divided.keys() & targets.keys():
            pairs = [(text, targets.get(mid, "")) for mid, text in divided.items()]
        for first, second in pairs:
            yield {languages[0]: first, languages[1]: second if done else ""}


def is_translated(attributes: Mapping[str, str], inherited: bool) -> bool:
    """Return whether an element of XLIFF is to be translated, which the element around it may say."""
    return attributes["translate"] != "no" if "translate" in attributes else inherited


def _divisions_of(side: Element, language: str) -> dict[str, str]:
    """Return the texts of the `<mrk mtype="seg">` of a side by their `mid`."""
    divisions: dict[str, str] = {}
    for mark in side.iter():
        if mark.get("mtype") == "seg":
            divisions.setdefault(mark.get("mid", ""), text_of(mark, language))
    return divisions


def read_tmx(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read a TMX file; the licence is taken from a note or property of its header.

    Raises:
        DataError: the file is no TMX, or an XML bomb; while reading, it is broken, or lacks a language.
        UsageError: the languages are not clear.
    """
    return _read_document(stream, request, _TmxReader(name, Skipped(request.strict)))


def read_xliff(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read an XLIFF file of version 1.2 or 2; a translation in a state such as "needs-translation" is left out."""
    return _read_document(stream, request, _XliffReader(name, Skipped(request.strict)))


def _read_document(stream: io.BufferedReader, request: TextRequest, reader: UnitReader) -> ParallelText:
    languages, pairs = pairs_of_units(parsed_units(stream, reader), request, reader.name, reader.skipped)
    header = "\n".join(reader.header)
    return ParallelText(
        languages, pairs, find_statement(header, what=LICENCE), find_statement(header, what=ORIGIN), reader.skipped
    )
