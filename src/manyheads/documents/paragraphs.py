"""Read plain text with paragraphs: the lines of a paragraph are one unit, and its translation is wrapped again.

A text of lines of at least 40 columns has a width. There a line goes on in the next one if the first word of that
would not have fitted, within a fifth of the width, or if that begins in lower case behind half a line. In a text
without a width, a line goes on if the next one begins in lower case. Other lines, such as those of verses, are
units of their own, and so are the cells of a table.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from manyheads.documents.blocks import Token, make_block
from manyheads.documents.document import Document, ReadOptions, text_document
from manyheads.documents.units import Edit, Translated, Unit

_MIN_WIDTH = 40  # columns
_FILLED, _HALF = 0.8, 0.5  # of the width
_LINE = re.compile(
    r"(?P<prefix>[ \t]*(?:>[ \t]*)*)"  # indentation, and marks of quoted text
    r"(?P<bullet>(?:[-*+•‣◦·–]|\(?(?:\d{1,3}|[a-z])[.)])[ \t]+(?=\S))?(?P<text>(?:.*\S)?)[^\n]*(?:\n|\Z)"
)
_CELL = re.compile(r"(?P<cell>(?:(?! {3}|[ ]?\t).)+)(?P<gap>(?: {3,}|[ ]?\t)\s*)?")
_WORD = re.compile(r"[^\W\d_]++(?:-[^\W\d_]++)*")
_HYPHENATED = re.compile(r"(?<![^\W\d_])([^\W\d_]++)-\Z")
_AT_LINE_END = re.compile(r"(?<!\w)\w++-[ \t]*\r?\n[ \t>]*\w++")
_CONJUNCTIONS = ("and", "or", "to", "und", "oder", "bis", "sowie", "et", "ou", "y", "o", "e")  # "Haus- und Hoftür"
_UNSPACED = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60]")
_CHUNK = re.compile(rf"\s*(?:{_UNSPACED.pattern}[、。，．！？；：」』）】》〉”’…]*|(?:(?!{_UNSPACED.pattern})\S)+)")


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document of a text with paragraphs."""
    return text_document(data, [read_paragraphs], options)


def read_paragraphs(text: str) -> Iterator[Unit]:
    """Yield the paragraphs, list items, headings, lines of verses and cells of tables of a plain text."""
    lines = list(_LINE.finditer(text))  # with an empty one at the end
    widths = sorted(
        _columns(line[0].rstrip()) for line, following in pairwise(lines) if line["text"] and following["text"]
    )
    width = widths[len(widths) * 9 // 10] if widths and widths[len(widths) * 9 // 10] >= _MIN_WIDTH else 0
    words = set(_WORD.findall(_AT_LINE_END.sub(" ", text).lower()))
    first = 0
    for last, (line, following) in enumerate(pairwise(lines)):
        if _goes_on(line, following, last > first, width):
            continue
        if _is_row(line):
            yield from _cells(line)
        elif line["text"]:
            yield _paragraph(lines[first : last + 1], width, words)
        first = last + 1


@dataclass(frozen=True)
class _Paragraph(Unit):
    """A paragraph.

    Attributes:
        width: columns of its lines; 0 if it is not wrapped.
        used: columns of the first line before the text.
    """

    width: int = 0
    used: int = 0

    def edits(self, translated: Translated) -> list[Edit]:
        """Write the translation with lines of the width of the text; `between` begins a line."""
        lines, column, line_beginning = [""], self.used, self.between or ""
        for chunk in _CHUNK.findall(translated.text):
            if self.width and lines[-1] and column + _columns(chunk) > self.width:
                lines.append("")
                column = _columns(line_beginning.lstrip("\r\n"))
            lines[-1] += chunk if lines[-1] else chunk.lstrip()
            column += _columns(chunk)
        return [Edit(self.start, self.end, line_beginning.join(lines))]


@dataclass(frozen=True)
class _Cell(Unit):
    """A cell of a table, with the blanks behind it but the last one, so that the next cell keeps its column."""

    def edits(self, translated: Translated) -> list[Edit]:
        return [Edit(self.start, self.end, translated.text.ljust(self.end - self.start))]


def _is_row(line: re.Match[str]) -> bool:
    match = _CELL.match(line["text"])
    return match is not None and match["gap"] is not None


def _cells(line: re.Match[str]) -> Iterator[Unit]:
    """Yield the cells of a row of a table."""
    for match in _CELL.finditer(line["text"]):
        start, end = (line.start("text") + offset for offset in match.span("cell"))
        is_padded = match["gap"] and "\t" not in match["gap"]
        block = make_block([Token("text", match["cell"])], escape=str)
        yield _Cell(block, start, end + len(match["gap"]) - 1) if is_padded else Unit(block, start, end)


def _goes_on(line: re.Match[str], following: re.Match[str], is_second: bool, width: int) -> bool:
    """Return whether a line, maybe the second one or a later one of a paragraph, goes on in the next line."""
    if not all(any(map(str.isalpha, text)) for text in (line["text"], following["text"])):
        return False
    if following["bullet"] or _is_row(line) or _is_row(following):
        return False
    if line["prefix"].count(">") != following["prefix"].count(">"):
        return False
    indent, next_indent = (_columns(match["prefix"] + (match["bullet"] or "")) for match in (line, following))
    if next_indent > indent or (is_second and next_indent != indent):  # a new paragraph, shown by its indentation
        return False
    is_small = following["text"][0].islower() and (line["text"][-1].isalpha() or line["text"][-1] in ",-\u00ad")
    if not width or _HYPHENATED.search(line["text"]):
        return is_small
    word = _CHUNK.match(following["text"])
    needed = _columns(line[0].rstrip()) + 1 + _columns(word[0] if word else "")
    return needed > (_HALF if is_small else _FILLED) * width


def _paragraph(lines: list[re.Match[str]], width: int, words: set[str]) -> Unit:
    """Return the unit of some lines of a text with a width, and with these words."""
    texts = [lines[0]["text"]]
    for line in lines[1:]:
        texts[-1:] = _joined(texts[-1], line["text"], words)
    first, last = lines[0], lines[-1]
    marks = first["prefix"] + (first["bullet"] or "")
    if len(lines) > 1:
        width = width or max(_columns(line[0].rstrip()) for line in lines)
    hanging = lines[1]["prefix"] if len(lines) > 1 else re.sub(r"[^\s>]", " ", marks)
    between = ("\r\n" if first[0].endswith("\r\n") else "\n") + hanging
    block = make_block([Token("text", "".join(texts))], escape=str)
    return _Paragraph(block, first.start("text"), last.end("text"), between, width, _columns(marks))


def _joined(text: str, following: str, words: set[str]) -> tuple[str, str]:
    """Return a line and the next one as they are joined, in a text with some words.

    A hyphen between them goes if the next line begins in lower case, unless the text has the compound, or both of
    its parts as words, elsewhere.
    """
    if text.endswith("\u00ad"):
        return text[:-1], following
    hyphenated, word = _HYPHENATED.search(text), _WORD.match(following)
    if hyphenated is None or word is None:
        return text if _UNSPACED.match(text[-1]) and _UNSPACED.match(following) else f"{text} ", following
    parts = hyphenated[1].lower(), word[0].lower()
    if parts[1] in _CONJUNCTIONS:
        return f"{text} ", following
    is_compound = "-".join(parts) in words or words.issuperset(parts)
    if word[0][0].isupper() or (is_compound and "".join(parts) not in words):
        return text, following
    return text[:-1], following


def _columns(text: str) -> int:
    """Return the columns of a text; wide letters of East Asia take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text.expandtabs())
