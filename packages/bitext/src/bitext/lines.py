r"""Read text files line by line, with the same rules for all files.

A line ends at "\n" only; one "\r" before it and a byte order mark at the start of the file are removed. Compressed
files are unpacked while they are read. No file is held in memory.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple, TypeVar

from bitext.errors import DataError, require
from bitext.files import cure_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

COMPRESSIONS = (".gz", ".xz", ".zst")
_BINARY = {
    b"PK\x03\x04": "a zip archive or an office document",
    b"%PDF-": "PDF",
    b"\xd0\xcf\x11\xe0": "an office document",
}
_MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
LONGEST_LINE = 1 << 26  # bytes; a file without line ends must not fill the memory
_ZSTD_BLOCK = 256  # packed bytes; they unpack to at most 8 MiB
_HEAD = 4096  # bytes from which UTF-16 is recognised

InvalidUtf8 = Literal["error", "replace"]
_Line = TypeVar("_Line")


class Line(NamedTuple):
    """The text of a line without its end, and the number of its bytes that are not UTF-8 and were replaced."""

    text: str
    replaced: int


def read_lines(path: Path, *, invalid_utf8: InvalidUtf8 = "error") -> Iterator[str]:
    r"""Read the lines of a file without their ends; files named .gz, .xz or .zst are unpacked.

    "replace" turns bytes that are not UTF-8 into U+FFFD; `read_decoded` also counts them.
    """
    return (line.text for line in read_decoded(path, invalid_utf8=invalid_utf8))


def read_decoded(path: Path, *, invalid_utf8: InvalidUtf8 = "error") -> Iterator[Line]:
    """Read lines as `read_lines` does, with the number of replaced bytes beside each text."""
    with damage_named(path), _open_unpacked(path) as stream:
        yield from decode_lines(stream, str(path), invalid_utf8=invalid_utf8)


def count_lines(path: Path) -> int:
    """Count the lines that `read_lines` finds in a file."""
    count, last = 0, b"\n"
    with damage_named(path), _open_unpacked(path) as stream:
        while block := stream.read(1 << 20):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")


def decode_lines(stream: BinaryIO, name: str, *, invalid_utf8: InvalidUtf8 = "error") -> Iterator[Line]:
    """Read the lines of an open byte stream, such as `sys.stdin.buffer`; messages call it `name`.

    Raises:
        DataError: the stream holds UTF-16, compressed data, bytes that are not UTF-8, or a line above 64 MiB.
    """
    offset = number = 0
    while raw := stream.readline(LONGEST_LINE):
        number += 1
        if number == 1:
            _refuse_foreign(raw[:_HEAD], name)
        if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
            raise DataError(f"{name}, line {number}: longer than {LONGEST_LINE:,} bytes. Is it a text file?")
        try:
            text, replaced = raw.decode(), 0
        except UnicodeDecodeError as error:
            if invalid_utf8 == "error":
                raise DataError(_invalid_bytes(name, number, offset, raw, error)) from error
            text, replaced = _replace_invalid(raw)
        if number == 1:
            text = text.removeprefix("\ufeff")
        offset += len(raw)
        yield Line(text.removesuffix("\n").removesuffix("\r"), replaced)


def align_lines(sides: Sequence[Iterator[_Line]], names: Sequence[object]) -> Iterator[tuple[_Line, _Line]]:
    """Yield line i of both texts; raise `DataError` with both counts if they differ."""
    for number, (source, target) in enumerate(zip_longest(*sides), 1):
        if source is None or target is None:
            longer = number + sum(1 for _ in sides[source is None])
            raise different_counts(names, (number - 1, longer) if source is None else (longer, number - 1))
        yield source, target


def different_counts(names: Sequence[object], counts: Sequence[int]) -> DataError:
    """Return the error for two files with different numbers of lines."""
    described = " and ".join(f"{name} has {count:,} lines" for name, count in zip(names, counts, strict=True))
    return DataError(
        f"The line counts differ: {described}. Line i of one must be the translation of line i of the other."
    )


def text_line(text: str) -> bytes:
    """Encode a text as exactly one line of UTF-8; line ends inside it become spaces."""
    return text.replace("\r", " ").replace("\n", " ").encode(errors="replace") + b"\n"


def _replace_invalid(raw: bytes) -> Line:
    """Decode bytes, with U+FFFD for invalid UTF-8; the invalid bytes are counted, not the U+FFFD."""
    escaped = raw.decode(errors="surrogateescape")
    return Line(raw.decode(errors="replace"), sum("\udc80" <= character <= "\udcff" for character in escaped))


def _invalid_bytes(name: str, number: int, offset: int, raw: bytes, error: UnicodeDecodeError) -> str:
    position = offset + error.start
    where = "unpacked text" if name.endswith(COMPRESSIONS) else "file"
    return (
        f"{name}, line {number}: byte 0x{raw[error.start]:02X} at offset {position:,} of the {where} is no UTF-8. "
        f"Convert the file (if it is {likely_encoding(raw)}: iconv -f {likely_encoding(raw)} -t UTF-8 FILE > NEW), "
        "or replace such bytes: --replace-invalid in data split."
    )


def likely_encoding(raw: bytes) -> str:
    """Guess the encoding: CP949 if the line decodes as Korean, which text of Western Europe hardly ever does.

    A letter such as "Ä" and the next byte may be a syllable of CP949 that EUC-KR lacks; two such syllables are no
    coincidence.
    """
    for encoding, syllables in (("euc_kr", "[가-힣]"), ("cp949", "[가-힣]{2}")):
        with suppress(UnicodeDecodeError):
            if re.search(syllables, raw.decode(encoding)):
                return "CP949"
    return "CP1252" if re.search(rb"[\x80-\x9f]", raw) else "LATIN1"


def _refuse_foreign(head: bytes, name: str) -> None:
    """Refuse files whose first bytes show UTF-16, UTF-32, or a compression that the file name does not show."""
    encoding = wide_encoding(head)
    if encoding:
        short = encoding.partition(" ")[0]
        raise DataError(f"{name} is {encoding}, not UTF-8. Convert it: iconv -f {short} -t UTF-8 FILE > NEW.")
    for magic, kind in _BINARY.items():
        if head.startswith(magic):
            raise DataError(f"{name} is {kind}, not text, whatever its name says. Write its text to a plain file.")
    for magic, suffix in _MAGIC.items():
        if head.startswith(magic):
            raise DataError(f"{name} holds compressed data. Give it a name that ends in {suffix}.")


def wide_encoding(head: bytes) -> str | None:
    """Return the name of the UTF-16 or UTF-32 encoding that the first bytes show, if any."""
    for mark, encoding in (
        (b"\xff\xfe\x00\x00", "UTF-32"),
        (b"\x00\x00\xfe\xff", "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
    ):
        if head.startswith(mark):
            return f"{encoding} (its byte order mark says so)"
    half = len(head) // 2
    first, second = head[0 : 2 * half : 2].count(0), head[1 : 2 * half : 2].count(0)
    more, less = max(first, second), min(first, second)
    if more >= 4 and more > 0.1 * half and less < 0.1 * more:
        return f"UTF-16{'BE' if first > second else 'LE'} (NULs at every other byte)"
    return None


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turn the errors of a missing, unreadable or damaged file into a `DataError` that names it."""
    try:
        yield
    except EOFError as error:
        raise DataError(f"{path} is truncated: its compressed data end too early. Copy it again.") from error
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path} is damaged or not what its name says: {error}. Copy it again.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}. {cure_of(error)}") from error


def _open_unpacked(path: Path) -> io.BufferedReader:
    """Open a file for reading bytes, unpacked as its name says."""
    if path.is_file() and path.stat().st_size == 0:
        if path.suffix in COMPRESSIONS:
            raise EOFError
        path = Path(os.devnull)  # /proc/kmsg is an empty file too, and would be read for ever
    if path.suffix == ".gz":
        return io.BufferedReader(gzip.GzipFile(path), _HEAD * 16)
    if path.suffix == ".xz":
        return io.BufferedReader(lzma.LZMAFile(path), _HEAD * 16)
    if path.suffix == ".zst":
        unpacker = ZstdFile(require("zstandard", extra="zstd", purpose=f"Reading {path}"), path.open("rb"))
        return io.BufferedReader(unpacker, _HEAD * 16)
    return path.open("rb")


class ZstdFile(io.RawIOBase):
    """Unpack a .zst file with any number of frames.

    The reader of the `zstandard` package does not report truncated files.
    """

    def __init__(self, zstandard: ModuleType, file: BinaryIO) -> None:
        self.zstandard = zstandard
        self.file = file
        self.frame = zstandard.ZstdDecompressor().decompressobj()
        self.rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill the buffer as far as possible; 0 at the end of the last frame."""
        view = memoryview(buffer)
        while not self.rest and (block := self.frame.unused_data or self.file.read(_ZSTD_BLOCK)):
            self.rest = memoryview(self.unpack(block))
        if not self.rest and not self.frame.eof:
            raise EOFError
        size = min(len(view), len(self.rest))
        view[:size], self.rest = self.rest[:size], self.rest[size:]
        return size

    def unpack(self, block: bytes) -> bytes:
        """Unpack the next compressed bytes; a new frame begins where one has ended."""
        if self.frame.eof:
            self.frame = self.zstandard.ZstdDecompressor().decompressobj()
        try:
            unpacked: bytes = self.frame.decompress(block)
        except self.zstandard.ZstdError as error:
            raise zlib.error(str(error)) from error
        return unpacked

    def close(self) -> None:
        """Close the compressed file."""
        self.file.close()
        super().close()
