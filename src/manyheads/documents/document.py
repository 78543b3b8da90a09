"""A document: the texts of a file, with the units that are translated, and how it is written again.

Files come from strangers: sizes are bounded, no entity is expanded, no other file or network is read.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from bitext.lines import likely_encoding, wide_encoding
from manyheads.documents.units import Part, Reader, Translated, Unit
from manyheads.errors import DataError

_HEAD = 4096  # bytes by which an encoding is recognised
_NO_TEXT = {"punycode", "idna", "unicode_escape", "raw_unicode_escape"}  # codecs of names and code, some quadratic
_MARKS = {  # byte order marks -> encodings
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


@dataclass(frozen=True)
class ReadOptions:
    """How a document is read.

    Attributes:
        name: name of the file, for messages.
        source: code of the language of the text; "" if it is not known.
        target: code of the language of the translations; "" if it is not known.
        everything: whether a catalogue's translated messages are units too.
        line_length: maximum length of a line of a subtitle, in letters; None is that of the target language.
        reading_speed: maximum letters a second of a subtitle; None is that of the target language.
    """

    name: str = "the file"
    source: str = ""
    target: str = ""
    everything: bool = False
    line_length: int | None = None
    reading_speed: float | None = None


@dataclass(frozen=True)
class Document:
    """A file and the units found in it.

    Attributes:
        parts: its texts: one, or those of a container.
        pack: makes the bytes of a file from the texts of the parts.
        notes: what was not understood, in words; it is copied as it is.
    """

    parts: Sequence[Part]
    pack: Callable[[Sequence[str]], bytes]
    notes: Sequence[str] = field(default=())

    @property
    def units(self) -> list[Unit]:
        """Return the units that are translated, in the order in which `write` takes their translations."""
        return [unit for part in self.parts for unit in part.units]

    @property
    def places(self) -> list[str]:
        """Return where each unit begins, for messages."""
        return [place for part in self.parts for place in part.places]

    def write(self, translations: Iterable[Translated], *, bilingual: bool = False) -> bytes:
        """Return the bytes of the file with the translation of each unit; see `Part.write`."""
        remaining = iter(translations)
        written = [part.write(list(islice(remaining, len(part.units))), bilingual=bilingual) for part in self.parts]
        return self.pack(written)


def text_document(
    data: bytes, readers: Sequence[Reader], options: ReadOptions, declared: str = "", *, notes: Sequence[str] = ()
) -> Document:
    """Return the document of a text file.

    Args:
        data: bytes of the file.
        readers: see `Part`.
        options: how it is read.
        declared: encoding that the file itself declares, if any.
        notes: see `Document`.

    Raises:
        DataError: bytes that are none of the encoding.
    """
    text, encode = decode(data, options.name, declared)
    return Document([Part(text, readers)], lambda texts: encode(texts[0]), notes)


def decode(data: bytes, name: str, declared: str = "") -> tuple[str, Callable[[str], bytes]]:
    """Return the text of a file, and a function that encodes a text as the file was, with its byte order mark.

    The encoding is that of the byte order mark, the declared one, UTF-8, or a guess. A character that the encoding
    lacks is written as a character reference where the file declares its encoding; else the whole file as UTF-8.

    Raises:
        DataError: bytes that are none of the declared encoding.
    """
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    encoding = _MARKS.get(mark) or declared or _guess(data, name)
    try:
        if codecs.lookup(encoding).name.replace("-", "_") in _NO_TEXT:
            raise LookupError("no encoding of files")
        text = data[len(mark) :].decode(encoding)
        exact = text.encode(encoding) == data[len(mark) :]
    except (UnicodeError, LookupError) as error:
        raise DataError(f"{name} has bytes that are none of its encoding, {encoding} ({error}).") from error
    if not exact:
        raise DataError(f"{name} is {encoding} written in a form of its own. Convert it to UTF-8: iconv -t UTF-8.")

    def encode(written: str) -> bytes:
        try:
            return mark + written.encode(encoding)
        except UnicodeEncodeError:
            if declared:
                return mark + written.encode(encoding, "xmlcharrefreplace")
            return codecs.BOM_UTF8 + written.encode()

    return text, encode


def _guess(data: bytes, name: str) -> str:
    if wide := wide_encoding(data[:_HEAD]):
        return wide.partition(" ")[0].lower()
    try:
        data.decode()
    except UnicodeDecodeError:
        if b"\0" in data:
            raise DataError(f"{name} is no text, whatever its name says.") from None
        return likely_encoding(data).lower()
    return "utf-8"


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield each line of a text without its end, which is "\n" or "\r\n", with the offset of its beginning."""
    start = 0
    for line in text.split("\n"):
        yield start, line.removesuffix("\r")
        start += len(line) + 1
