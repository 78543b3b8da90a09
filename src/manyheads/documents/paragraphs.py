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
from manyheads.documents.document import Document, ReadOptions, numbered_lines, text_document
from manyheads.documents.units import Edit, Translated, Unit

_MIN_WIDTH = 40  # columns
_FILLED, _HALF = 0.8, 0.5  # of the width
_PREFIX = re.compile(r"[ \t]*(?:>[ \t]*)*")  # indentation, and marks of quoted text
_BULLET = re.compile(r"(?:[-*+•‣◦·–]|\(?(?:\d{1,3}|[a-z])[.)])[ \t]+(?=\S)")
_CELL_GAP = re.compile(r"[ ]{3,}|[ ]*\t\s*")
# Words that a hyphen before them does not join: "Haus- und Gartentür".
_CONJUNCTIONS = ("and", "or", "to", "und", "oder", "bis", "sowie", "et", "ou", "y", "o", "e")
_WORD = re.compile(r"[^\W\d_]++")
_HYPHENATED = re.compile(r"(?<![^\W\d_])([^\W\d_]++)-\Z")
_AT_LINE_END = re.compile(r"(?<!\w)\w++-[ \t]*\r?\n[ \t>]*\w++")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60\u3000-\u303f]")
_CHUNK = re.compile(rf"\s*(?:{_UNSPACED.pattern}[、。，．！？；：」』）】》〉”’…]*|(?:(?!{_UNSPACED.pattern})\S)+)")


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document of a text with paragraphs."""
    return text_document(data, [read_paragraphs], options)


def read_paragraphs(text: str) -> Iterator[Unit]:
    """Yield the paragraphs, list items, headings, lines of verses and cells of tables of a plain text."""
    lines = [_read_line(start, line) for start, line in numbered_lines(text)]
    reader = _ParagraphReader(text, lines)
    first = 0
    while first < len(lines):
        last = first
        while last + 1 < len(lines) and reader.goes_on(first, last):
            last += 1
        yield from reader.units(first, last)
        first = last + 1


@dataclass(frozen=True)
class _Line:
    """A line.

    Attributes:
        start: its offset.
        text: the line without white space at its end.
        prefix: its indentation and its marks of quoted text, with the bullet of a list item.
        has_bullet: whether it begins a list item.
    """

    start: int
    text: str
    prefix: str
    has_bullet: bool

    @property
    def content(self) -> str:
        return self.text[len(self.prefix) :]

    @property
    def cells(self) -> list[str]:
        return _CELL_GAP.split(self.content)


def _read_line(start: int, line: str) -> _Line:
    line = line.rstrip()
    prefix = _PREFIX.match(line)
    end = prefix.end() if prefix else 0
    bullet = _BULLET.match(line, end)
    return _Line(start, line, line[: bullet.end() if bullet else end], bullet is not None)


@dataclass(frozen=True)
class _Paragraph(Unit):
    """A paragraph.

    Attributes:
        width: columns of its lines; 0 if it is not wrapped.
        indent: beginning of its lines but the first one, which is already there.
        used: columns of the first line before the text.
        line_end: end of a line.
    """

    width: int = 0
    indent: str = ""
    used: int = 0
    line_end: str = "\n"

    def edits(self, translated: Translated) -> list[Edit]:
        """Write the translation wrapped as the text was."""
        lines, column = [""], self.used
        for chunk in _CHUNK.findall(translated.text):
            if self.width and lines[-1] and column + _columns(chunk) > self.width:
                lines.append("")
                column = _columns(self.indent)
            lines[-1] += chunk if lines[-1] else chunk.lstrip()
            column += _columns(chunk)
        return [Edit(self.start, self.end, f"{self.line_end}{self.indent}".join(lines))]


@dataclass(frozen=True)
class _Cell(Unit):
    """A cell of a table, with the blanks behind it but the last one."""

    def edits(self, translated: Translated) -> list[Edit]:
        """Write the translation with as many blanks as keep the next cell in its column."""
        return [Edit(self.start, self.end, translated.text.ljust(self.end - self.start))]


class _ParagraphReader:
    """Reads paragraphs.

    Attributes:
        width: columns of a line; 0 for a text without a width.
        words: words of the text, without those that are hyphenated at the end of a line.
    """

    def __init__(self, text: str, lines: list[_Line]) -> None:
        self.lines = lines
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        widths = sorted(
            _columns(line.text) for line, following in pairwise(lines) if line.content and following.content
        )
        width = widths[len(widths) * 9 // 10] if widths else 0
        self.width = width if width >= _MIN_WIDTH else 0
        self.words = set(re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", _AT_LINE_END.sub(" ", text).lower()))

    def goes_on(self, first: int, last: int) -> bool:
        """Return whether the text of some lines goes on in the next one."""
        line, following = self.lines[last], self.lines[last + 1]
        if not line.content or not following.content or following.has_bullet:
            return False
        if len(line.cells) > 1 or len(following.cells) > 1 or line.prefix.count(">") != following.prefix.count(">"):
            return False
        indent, deeper = _columns(following.prefix), _columns(following.prefix) > _columns(line.prefix)
        if deeper or (
            last > first and indent != _columns(line.prefix)
        ):  # a new paragraph, shown by its indentation
            return False
        if not any(map(str.isalpha, following.content)) or not any(map(str.isalpha, line.content)):
            return False
        small = following.content[0].islower() and (line.content[-1].isalpha() or line.content[-1] in ",-\u00ad")
        if not self.width or _HYPHENATED.search(line.content):
            return small
        word = _CHUNK.match(following.content)
        needed = _columns(line.text) + 1 + _columns(word[0] if word else "")
        return needed > (_HALF if small else _FILLED) * self.width

    def units(self, first: int, last: int) -> Iterator[Unit]:
        """Yield the unit of some lines, or those of the cells of one."""
        lines = self.lines[first : last + 1]
        start, end = lines[0].start + len(lines[0].prefix), lines[-1].start + len(lines[-1].text)
        if len(lines[0].cells) > 1:
            yield from _cells(lines[0])
            return
        texts = [lines[0].content]
        for line in lines[1:]:
            texts[-1:] = self.joined(texts[-1], line.content)
        hanging = lines[1].prefix if last > first else re.sub(r"[^\s>]", " ", lines[0].prefix)
        width = self.width or (max(_columns(line.text) for line in lines) if last > first else 0)
        block = make_block([Token("text", "".join(texts))], escape=str)
        between = f"{self.line_end}{hanging}"
        yield _Paragraph(block, start, end, between, width, hanging, _columns(lines[0].prefix), self.line_end)

    def joined(self, text: str, following: str) -> tuple[str, str]:
        """Return a line and the next one as they are joined.

        A hyphen between them goes if the next line begins in lower case, unless the text has the compound, or both
        of its parts as words, elsewhere.
        """
        if text.endswith("\u00ad"):
            return text[:-1], following
        hyphenated, word = _HYPHENATED.search(text), _WORD.match(following)
        if hyphenated is None or word is None:
            is_unspaced = _UNSPACED.match(text[-1]) and _UNSPACED.match(following)
            return text if is_unspaced else f"{text} ", following
        parts = hyphenated[1].lower(), word[0].lower()
        if parts[1] in _CONJUNCTIONS:
            return f"{text} ", following
        is_compound = "-".join(parts) in self.words or self.words.issuperset(parts)
        if word[0][0].isupper() or (is_compound and "".join(parts) not in self.words):
            return text, following
        return text[:-1], following


def _cells(line: _Line) -> Iterator[Unit]:
    """Yield the cells of a line of a table; the blanks behind a cell but the last one belong to it."""
    position = len(line.prefix)
    for cell in line.cells:
        start, end = line.start + position, line.start + position + len(cell)
        gap = _CELL_GAP.match(line.text, position + len(cell))
        blanks = gap[0] if gap else ""
        block = make_block([Token("text", cell)], escape=str)
        if blanks and "\t" not in blanks:
            yield _Cell(block, start, end + len(blanks) - 1)
        else:
            yield Unit(block, start, end)
        position += len(cell) + len(blanks)


def _columns(text: str) -> int:
    """Return the columns of a text; wide letters of East Asia take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text.expandtabs())
