"""Containers: the zip archives in which office documents and books keep their texts (PKWARE APPNOTE 6.3.10).

Archives come from strangers: what is unpacked is counted while it is unpacked, whatever sizes the archive declares.
A member that does not change is copied as it lies in the archive, and is never unpacked.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from itertools import pairwise
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from bitext.languages import base_language, normal_form
from manyheads.documents.document import Document, ReadOptions, decode
from manyheads.documents.units import Part
from manyheads.documents.xml import check_xml, declared_encoding
from manyheads.errors import DataError

MAX_MEMBERS = 10_000
MAX_UNPACKED = 64 << 20  # bytes of all texts together
MAX_RATIO = 100  # unpacked bytes of all texts for each byte of the archive...
_FREE_RATIO = 8 << 20  # ... beyond this many bytes
_ENCRYPTED = 1  # flag of a member
_LOCAL_HEADER = 30  # bytes at least
_OUTSIDE = re.compile(r"^[/\\]|^[A-Za-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)|\0")  # names that leave the folder
_SIGNATURES = ("_xmlsignatures/", "META-INF/documentsignatures.xml", "META-INF/signatures.xml")
_DAMAGE = (BadZipFile, struct.error, zlib.error, EOFError, OSError, RuntimeError, ValueError)


class Container:
    """The archive of a document; `names` are those of its members, in their order."""

    def __init__(self, data: bytes, name: str) -> None:
        """Read the list of members; raise a `DataError` if the archive is damaged, encrypted or hostile."""
        self._data, self._name, self._unpacked = data, name, 0
        self._encoders: dict[str, Callable[[str], bytes]] = {}
        try:
            self._archive = ZipFile(io.BytesIO(data))
        except _DAMAGE as error:
            raise DataError(f"{name} is a damaged archive ({error}). Make or download it again.") from None
        members = self._archive.infolist()
        self.names = [member.filename for member in members]
        borders = sorted([*(member.header_offset for member in members), self._archive.start_dir])
        self._ends = dict(pairwise(borders))
        sizes = {member.header_offset: _LOCAL_HEADER + member.compress_size for member in members}
        is_apart = all(0 <= start <= self._ends.get(start, 0) - size for start, size in sizes.items())
        for is_bad, problem in (
            (len(members) > MAX_MEMBERS, f"has more than {MAX_MEMBERS:,} members. It is not read."),
            (len(set(self.names)) < len(members), "has two members of one name. Save it anew with its program."),
            (
                any(_OUTSIDE.search(m.orig_filename) for m in members),
                "has members outside its folder. It is not read.",
            ),
            (any(m.flag_bits & _ENCRYPTED for m in members), "is encrypted. Save it without a password."),
            (
                len(sizes) < len(members) or not is_apart,
                "is a damaged archive (its members overlap). Make or download it again.",
            ),
        ):
            if is_bad:
                raise DataError(f"{name} {problem}")

    def text(self, member: str) -> str:
        """Return the text of a member; raise a `DataError` if there is none, or it is damaged or too large."""
        where = f"{member} in {self._name}"
        if member not in self.names:
            raise DataError(f"{self._name} has no {member}: it is damaged, or of another format.")
        if self._archive.getinfo(member).compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise DataError(f"{where} is packed in an unusual way. Pack it with deflate.")
        allowed = min(MAX_UNPACKED, max(_FREE_RATIO, MAX_RATIO * len(self._data))) - self._unpacked
        try:
            with self._archive.open(member) as stream:
                content = stream.read(allowed + 1)
        except _DAMAGE as error:
            raise DataError(f"{where} is damaged ({error}). Make or download it again.") from None
        if len(content) > allowed:
            raise DataError(f"{where} unpacks to too much, as bombs do. It is not read.")
        self._unpacked += len(content)
        text, self._encoders[member] = decode(content, where, declared_encoding(content))
        return text

    def xml(self, member: str) -> str:
        """Return the text of a member, which is XML; see `text` and `check_xml`."""
        text = self.text(member)
        check_xml(text, f"{member} in {self._name}")
        return text

    def document(
        self, parts: Sequence[Part], finish: Callable[[str], str], others: Iterable[str], notes: Sequence[str] = ()
    ) -> Document:
        """Return the document of some parts.

        Where any of them has translations, `finish` sets the languages in its text, and in those of `others`.
        """
        if any(name.startswith(_SIGNATURES) for name in self.names):
            notes = [*notes, "the digital signature, which does not hold for a translation"]
        sources = {member: self.text(member) for member in others if member in self.names}

        def pack(texts: Sequence[str]) -> bytes:
            changed = {part.name: text for part, text in zip(parts, texts, strict=True) if text != part.text}
            if not changed:
                return self._data
            return self._pack(
                {name: self._encoders[name](finish(text)) for name, text in (sources | changed).items()}
            )

        return Document(parts, pack, notes)

    def _pack(self, changed: Mapping[str, bytes]) -> bytes:
        """Return the archive with the contents of some members replaced; all else stays as it lies in it."""
        output = io.BytesIO()
        with ZipFile(output, "w") as archive:
            archive.comment = self._archive.comment
            for member in sorted(map(copy, self._archive.infolist()), key=lambda member: member.header_offset):
                if member.filename in changed:
                    attributes = member.external_attr
                    archive.writestr(member, changed[member.filename])
                    member.external_attr = attributes  # where there are none, `writestr` sets some
                    continue
                output.seek(archive.start_dir)
                output.write(self._data[member.header_offset : self._ends[member.header_offset]])
                member.header_offset, archive.start_dir = archive.start_dir, output.tell()
                archive.filelist.append(member)
            order = {name: place for place, name in enumerate(self.names)}
            archive.filelist.sort(key=lambda member: order[member.filename])
        return output.getvalue()


def language_setter(patterns: Sequence[str], options: ReadOptions) -> Callable[[str], str]:
    """Return a function that replaces the codes of the source language in a text by that of the target language.

    Args:
        patterns: regular expressions with two groups: what is before a code, and the code; and a third group with
            what is between the code and a country, where there is one.
        options: names the two languages.
    """
    source, target = base_language(options.source), normal_form(options.target)
    language, _, country = target.partition("-")

    def replace(match: re.Match[str]) -> str:
        if not target or base_language(match[2]) != source:
            return match[0]
        code = target if match.lastindex == 2 else f"{language}{match[3]}{country or 'none'}"
        return f"{match[1]}{code}"

    def finish(text: str) -> str:
        for pattern in patterns:
            text = re.sub(pattern, replace, text)
        return text

    return finish
