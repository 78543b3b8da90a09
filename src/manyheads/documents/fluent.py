"""Read Fluent: the texts of messages, terms and attributes, and of the variants in them, are units.

Placeables, such as `{ $name }`, stay in the text: see "Fluent Syntax" at projectfluent.org.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from manyheads.documents.document import Document, ReadOptions, numbered_lines, text_document
from manyheads.documents.messages import ReplacedMessage, message_block, message_tokens
from manyheads.documents.units import Unit

_BEGINNING = re.compile(r"-?[A-Za-z][\w-]* *=|[ \t]+\.(?P<attribute>[A-Za-z][\w-]*) *=")
_NO_TEXTS = {"accesskey", "key", "style"}  # attributes: letters of keys, and sizes of windows
_SIGN = re.compile(r"[{}]|\n[ \t]*\*?\[[ \t]*[\w.-]+[ \t]*\]")  # in text, with the keys of variants
_CODE_SIGN = re.compile(r'"(?:[^"\\\n]|\\.)*"|->|[{}]')  # in a placeable
_PARAGRAPH = re.compile(r"(?:[^\n]|\n(?![ \t\r]*\n))+")
_LINE_BEGINNING = re.compile(r"(\n[ \t]*)([.*\[])")  # which would be no text there


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document in the bytes of a Fluent file; see `Format.read`."""
    return text_document(data, [_read_patterns], options)


def _read_patterns(text: str) -> Iterator[Unit]:
    for start, end in _patterns(text):
        for first, last in _texts(text[start:end]):
            for match in _PARAGRAPH.finditer(text, start + first, start + last):
                block, _ = message_block([*message_tokens(match[0])], one_blank=True)
                yield ReplacedMessage(block, *match.span(), write=_write)


def _write(text: str) -> str:
    return _LINE_BEGINNING.sub(r'\1{ "\2" }', text)


def _patterns(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the value of each message, term and attribute, over all its lines."""
    pattern: tuple[int, int] | None = None
    for start, line in numbered_lines(text):
        match = _BEGINNING.match(line)
        if pattern and (match or line[:1] not in ("", " ", "\t", "}", "[", "*")):
            yield pattern
            pattern = None
        if match and match["attribute"] not in _NO_TEXTS:
            pattern = start + match.end(), start + len(line)
        elif pattern and not match and line.strip():
            pattern = pattern[0], start + len(line)
    if pattern:
        yield pattern


def _texts(pattern: str) -> list[tuple[int, int]]:
    """Return the offsets of the texts of a value: its own, and those of its variants; none if a brace is open."""
    spans: list[tuple[int, int]] = []
    braces: list[tuple[str, int]] = []  # kind and offset of the open ones
    start = position = 0
    while match := (_CODE_SIGN if braces and braces[-1][0] == "code" else _SIGN).search(pattern, position):
        position, sign = match.end(), match[0]
        if sign == "{":
            braces.append(("code", match.start()))
        elif sign == "->":
            spans.append((start, braces[-1][1]))
            braces[-1], start = ("variants", braces[-1][1]), position
        elif sign == "}" and not braces:
            return []
        elif (sign == "}" and braces.pop()[0] == "variants") or (sign[0] == "\n" and braces):
            spans.append((start, match.start()))
            start = position
    return [] if braces else [*spans, (start, len(pattern))]
