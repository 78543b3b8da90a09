"""Read two line-aligned files: plain, compressed, or members of a zip archive (Moses format, OPUS)."""

from __future__ import annotations

import io
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from bitext.errors import DataError
from bitext.file_names import is_language, languages_of_files
from bitext.files import cure_of
from bitext.formats.opening import check_ratio, open_input, text_lines
from bitext.formats.text import (
    LICENCE,
    ORIGIN,
    ParallelText,
    TextRequest,
    choose_languages,
    find_statement,
    list_names,
    match_language,
    no_text_in,
)
from bitext.lines import align_lines

_FAULTS = (  # exceptions that zipfile raises for damaged archives
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, IndexError, ValueError,
    NotImplementedError, RuntimeError, struct.error,
)  # fmt: skip
_NOTES = ("readme", "license", "licence", "copying")  # members that state licence and origin
_LONGEST_NOTE = 1 << 16  # bytes read of such a member
_ENCRYPTED = 1  # bit of the flags of a member
_OTHER_SUFFIXES = {"xml", "ids", "md"}  # suffixes of members that look like the code of a language


def read_moses(paths: tuple[Path, Path], request: TextRequest) -> ParallelText:
    """Read two files of lines; without languages in their names, the first is the source."""
    known = languages_of_files(paths) or (request.source or "", request.target or "")
    languages, order = _choose_sides(known, request, " and ".join(path.name for path in paths))
    chosen = [paths[index] for index in order]
    return ParallelText(
        languages, align_lines([_lines_of(path) for path in chosen], [str(path) for path in chosen])
    )


def _lines_of(path: Path) -> Iterator[str]:
    with open_input(path) as stream:
        yield from text_lines(stream, str(path))


def _choose_sides(known: Sequence[str], request: TextRequest, name: str) -> tuple[tuple[str, str], tuple[int, int]]:
    """Return source and target language, and the indices of their files in the order of the languages `known`."""
    languages = choose_languages(request, known, name)
    matches = [match_language(language, known) for language in languages]
    for language, match in zip(languages, matches, strict=True):
        if match is None:
            raise no_text_in(language, known, name)
    return languages, (known.index(matches[0] or ""), known.index(matches[1] or ""))


def read_archive(stream: io.BufferedReader, request: TextRequest, name: str) -> ParallelText:
    """Read the two texts of a zip archive, and the licence that its README or LICENSE states.

    No member is unpacked to disk.

    Raises:
        DataError: the file is no archive, or holds no two texts, several texts, a path out of it, or a bomb.
        UsageError: the languages are not clear.
    """
    with _faults_named(name):
        archive = zipfile.ZipFile(stream)
    members = {member.filename: member for member in archive.infolist() if not member.is_dir()}
    size = stream.seek(0, io.SEEK_END)
    for member in members.values():
        _check_member(member, size, name)
    texts = _texts_of(list(members))
    if len(texts) != 1:
        raise DataError(
            f"{name} holds {'several texts' if texts else 'no two files of lines'}, but: "
            f"{list_names(texts or members)}. Unpack it, and name the file to convert, or two with "
            "equally many lines."
        )
    ((stem, known),) = texts.items()
    languages, order = _choose_sides(known, request, name)
    chosen = [f"{stem}.{known[index]}" for index in order]
    sides = [_member_lines(archive, members[member], name) for member in chosen]
    pairs = align_lines(sides, [f"{name}: {member}" for member in chosen])
    return ParallelText(languages, pairs, *_read_notes(archive, members.values(), name))


def _texts_of(names: Sequence[str]) -> dict[str, list[str]]:
    """Map the name of each text, without language, to its languages; for NAME.de-en only these two."""
    texts: dict[str, list[str]] = {}
    for name in names:
        stem, _, ending = name.rpartition(".")
        if stem and is_language(ending) and ending not in _OTHER_SUFFIXES:
            texts.setdefault(stem, []).append(ending)
    for stem, known in texts.items():
        direction = [part for part in stem.rpartition(".")[2].split("-") if part in known]
        texts[stem] = direction if len(direction) == 2 else known
    return {stem: known for stem, known in texts.items() if len(known) > 1}


def _check_member(member: zipfile.ZipInfo, size: int, name: str) -> None:
    """Refuse a member of an archive of `size` bytes that has a path out of it, is a link, encrypted or a bomb."""
    path = member.filename.replace("\\", "/")
    if path.startswith("/") or path[1:2] == ":" or ".." in PurePosixPath(path).parts or not path.isprintable():
        raise DataError(f"{name} holds the member {path!r}, which leads out of its folder. It is not read.")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise DataError(f"{name} holds the member {path!r}, which is a link. It is not read.")
    if member.flag_bits & _ENCRYPTED:
        raise DataError(f"{name} holds the member {path!r}, which is encrypted. Unpack it with its password.")
    packed = min(member.compress_size, size)  # a bomb may claim more bytes than the archive has
    check_ratio(member.file_size, packed, f"{name}: {path}")


def _member_lines(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Iterator[str]:
    where = f"{name}: {member.filename}"
    with _faults_named(where), archive.open(member) as opened:
        yield from text_lines(io.BufferedReader(opened, 1 << 16), where)  # type: ignore[arg-type]


def _read_notes(
    archive: zipfile.ZipFile, members: Iterable[zipfile.ZipInfo], name: str
) -> tuple[str | None, str | None]:
    """Return licence and origin, as the members README and LICENSE state them after a colon.

    Without such a line, the licence is the first line of the member LICENSE.
    """
    notes = {}
    for member in members:
        short = PurePosixPath(member.filename).name.lower()
        if short.startswith(_NOTES):
            with _faults_named(f"{name}: {member.filename}"), archive.open(member) as opened:
                notes[short] = opened.read(_LONGEST_NOTE).decode(errors="replace")
    text = "\n".join(notes.values())
    licences = "\n".join(note for short, note in notes.items() if not short.startswith("readme"))
    title = licences.strip().partition("\n")[0].strip()
    return find_statement(text, what=LICENCE) or title or None, find_statement(text, what=ORIGIN)


def notes_of_archive(path: Path) -> tuple[str | None, str | None]:
    """Return licence and origin that an archive states; see `_read_notes`."""
    with _faults_named(str(path)), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            _check_member(member, path.stat().st_size, str(path))
        return _read_notes(archive, archive.infolist(), str(path))


@contextmanager
def _faults_named(what: str) -> Iterator[None]:
    """Turn the errors of a damaged archive or member into a `DataError` that names it."""
    try:
        yield
    except _FAULTS as error:
        reason = getattr(error, "strerror", None) or str(error)
        cause = reason.partition(" and header ")[0].removesuffix(".") or "it ends too early"
        raise DataError(f"{what} cannot be read: {cause[:200]}. {cure_of(error, 'Get it again.')}") from error
