"""Read Fluent: the texts of messages, terms and attributes, and of the variants in them, are units.

Placeables, such as `{ $name }`, stay in the text: see "Fluent Syntax" at projectfluent.org.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from manyheads.documents.document import Document, ReadOptions, numbered_lines, text_document
from manyheads.documents.messages import ReplacedMessage, message_block, message_tokens, texts_of_branches
from manyheads.documents.units import Unit

_BEGINNING = re.compile(r"-?[A-Za-z][\w-]* *=|[ \t]+\.(?P<attribute>[A-Za-z][\w-]*) *=")
_NO_TEXTS = {"accesskey", "key", "style"}  # attributes: letters of keys, and sizes of windows
_SELECTOR = re.compile(r'\{(?:[^{}"]|"(?:[^"\\\n]|\\.)*"|\{[^{}]*\})*?->')
_SIGN = re.compile(r'\{[ \t]*"(?:[^"\\\n]|\\.)*"[ \t]*\}|[{}]|\n[ \t]*\*?\[[ \t]*[\w.-]+[ \t]*\]')
_PARAGRAPH = re.compile(r"(?:[^\n]|\n(?![ \t\r]*\n))+")
_LINE_BEGINNING = re.compile(r"(\n[ \t]*)([.*\[])")  # which would be no text there


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document in the bytes of a Fluent file; see `Format.read`."""
    return text_document(data, [_read_patterns], options)


def _read_patterns(text: str) -> Iterator[Unit]:
    for start, end in _patterns(text):
        for first, last in texts_of_branches(text[start:end], _SELECTOR, _SIGN):
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
