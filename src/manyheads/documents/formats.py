"""The formats of documents, and how a file tells its own."""

from __future__ import annotations

import codecs
import importlib
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from manyheads.errors import DataError, UsageError

if TYPE_CHECKING:
    from manyheads.documents.document import Document, ReadOptions

_HEAD = 4096  # bytes by which a format is recognised


@dataclass(frozen=True)
class Format:
    """A format of documents.

    Attributes:
        suffixes: endings of the names of its files; the first one is shown.
        media_type: media type of its files.
        module: module of this package with the function `read(data, options)`, which returns a `Document`.
        begins: the beginning of such a file, behind white space and a byte order mark; None if it shows nothing.
    """

    suffixes: tuple[str, ...]
    media_type: str
    module: str
    begins: re.Pattern[bytes] | None = None

    def read(self, data: bytes, options: ReadOptions) -> Document:
        """Return the document in the bytes of a file.

        Raises:
            DataError: the file is damaged, encrypted, too large, or not of this format.
        """
        document: Document = importlib.import_module(f"manyheads.documents.{self.module}").read(data, options)
        return document


_OFFICE = "application/vnd.openxmlformats-officedocument"
FORMATS = {
    "srt": Format((".srt",), "application/x-subrip", "srt", re.compile(rb"\d+\s*\n[\d:,. ]+-->")),
    "vtt": Format((".vtt",), "text/vtt", "vtt", re.compile(rb"WEBVTT\b")),
    "ass": Format((".ass", ".ssa"), "text/x-ssa", "ass", re.compile(rb"\[Script Info\]", re.IGNORECASE)),
    "html": Format(
        (".html", ".htm", ".xhtml"), "text/html", "html", re.compile(rb"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
    ),
    "markdown": Format((".md", ".markdown"), "text/markdown", "markdown"),
    "po": Format((".po", ".pot"), "text/x-gettext-translation", "po"),
    "xliff": Format(
        (".xlf", ".xliff"), "application/xliff+xml", "xliff", re.compile(rb"(?:<\?[^>]*>\s*)?<xliff\b")
    ),
    "json": Format((".json", ".arb"), "application/json", "json_catalogue"),
    "fluent": Format((".ftl",), "text/plain", "fluent"),
    "docx": Format((".docx",), f"{_OFFICE}.wordprocessingml.document", "docx"),
    "pptx": Format((".pptx",), f"{_OFFICE}.presentationml.presentation", "pptx"),
    "odt": Format((".odt", ".odp"), "application/vnd.oasis.opendocument.text", "odt"),
    "epub": Format((".epub",), "application/epub+zip", "epub"),
    "paragraphs": Format((), "text/plain", "paragraphs"),
}
SUFFIXES = (".txt", *(suffix for known in FORMATS.values() for suffix in known.suffixes))
_MEMBERS = {  # a member that a container of a format holds
    b"word/document.xml": "docx",
    b"ppt/presentation.xml": "pptx",
    b"mimetypeapplication/epub+zip": "epub",
    b"mimetypeapplication/vnd.oasis.opendocument": "odt",
}
_REFUSED = {
    b"%PDF-": "PDF, which holds places of letters and no text. Convert it to docx or html first",
    b"\xd0\xcf\x11\xe0": "an older or encrypted office file. Save it as docx, odt or pptx without a password",
    b"{\\rtf": "RTF. Save it as docx or odt",
}


def format_of(name: str, data: bytes) -> str | None:
    """Return the name of the format of a file, by its name, else by its content; None for plain text.

    Raises:
        DataError: the file is of a format that cannot be translated; the message says what to do.
    """
    for begins, kind in _REFUSED.items():
        if data.startswith(begins):
            raise DataError(f"{name} is {kind}.")
    suffix = PurePath(name).suffix.lower()
    for format_name, known in FORMATS.items():
        if suffix in known.suffixes:
            return format_name
    if data.startswith(b"PK"):
        for member, format_name in _MEMBERS.items():
            if member in data:
                return format_name
        raise DataError(f"{name} is an archive. Unpack it and translate its files.")
    if suffix in ("", ".xml"):
        head = data[:_HEAD].removeprefix(codecs.BOM_UTF8).lstrip()
        return next((name for name, known in FORMATS.items() if known.begins and known.begins.match(head)), None)
    return None


def read_document(data: bytes, form: str, options: ReadOptions) -> Document:
    """Return the document in the bytes of a file of a format, one of `FORMATS`.

    Raises:
        DataError: see `Format.read`.
        UsageError: there is no such format.
    """
    if form not in FORMATS:
        raise UsageError(f"there is no format {form!r}. Choose from {', '.join(FORMATS)}.")
    return FORMATS[form].read(data, options)
