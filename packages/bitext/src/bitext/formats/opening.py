"""Open files for the readers: unpack them, decode any Unicode encoding, and refuse decompression bombs."""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bitext.errors import DataError, require
from bitext.lines import COMPRESSIONS, LONGEST_LINE, ZstdFile, damage_named, decode_lines, wide_encoding

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_UNCHECKED_BYTES = 1 << 25  # unpacked bytes that are allowed at any ratio
_LARGEST_RATIO = 200  # unpacked to packed bytes above that; text packs to a tenth, a bomb to a thousandth
_BLOCK = 1 << 16  # unpacked bytes read at once
_HEAD = 4_096  # bytes from which an encoding is recognised


def check_ratio(unpacked: int, packed: int, name: str) -> None:
    """Raise `DataError` if the ratio of unpacked to packed bytes is the sign of a decompression bomb."""
    if unpacked > _UNCHECKED_BYTES and unpacked > _LARGEST_RATIO * packed:
        raise DataError(
            f"{name} unpacks to more than {_LARGEST_RATIO} times its size ({packed:,} bytes), as only bombs do. "
            "It is not read. If you trust it, unpack it yourself and name the unpacked file."
        )


def open_input(path: Path) -> io.BufferedReader:
    """Open a file for reading bytes, unpacked as its name says."""
    with damage_named(path):
        file = path.open("rb")
        if path.suffix not in COMPRESSIONS:
            return file
        with file, _LimitedReader(file, path) as begin:
            while (
                begin.size <= _UNCHECKED_BYTES
                and file.tell() <= _UNCHECKED_BYTES // _LARGEST_RATIO
                and begin.read(_BLOCK)
            ):
                pass  # a bomb is refused before its text is read
        return io.BufferedReader(_LimitedReader(path.open("rb"), path), _BLOCK)


class _LimitedReader(io.RawIOBase):
    """Read an unpacked stream; raise `DataError` if it becomes far longer than the packed bytes read so far."""

    def __init__(self, packed: BinaryIO, path: Path) -> None:
        self.packed = packed
        self.path = path
        self.size = 0
        self.unpacked: io.BufferedIOBase | io.RawIOBase
        if path.suffix == ".gz":
            self.unpacked = gzip.GzipFile(fileobj=packed)
        elif path.suffix == ".xz":
            self.unpacked = lzma.LZMAFile(packed)  # noqa: SIM115 - closed by `close`
        else:
            self.unpacked = ZstdFile(require("zstandard", extra="zstd", purpose=f"Reading {path}"), packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill the buffer as far as possible; 0 at the end."""
        view = memoryview(buffer)
        with damage_named(self.path):
            block = self.unpacked.read(len(view)) or b""
            if not block and not self.size:
                raise EOFError
        view[: len(block)] = block
        self.size += len(block)
        check_ratio(self.size, self.packed.tell(), str(self.path))
        return len(block)

    def close(self) -> None:
        self.unpacked.close()
        self.packed.close()
        super().close()


def text_lines(stream: io.BufferedReader, name: str) -> Iterator[str]:
    r"""Yield the lines of UTF-8, UTF-16 or UTF-32 text, without "\n", one "\r" before it, and byte order mark.

    Raises:
        DataError: bytes are not of the encoding, or a line is longer than 64 MiB.
    """
    encoding = (wide_encoding(stream.peek(_HEAD)[:_HEAD]) or "").partition(" ")[0]
    if not encoding:
        yield from (line.text for line in decode_lines(stream, name))
        return
    text, number = io.TextIOWrapper(stream, encoding, newline="\n"), 0
    try:
        while line := text.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise DataError(f"{name}, line {number + 1}: longer than {LONGEST_LINE:,} characters.")
            yield (line if number else line.removeprefix("\ufeff")).removesuffix("\n").removesuffix("\r")
            number += 1
    except UnicodeError as error:
        raise DataError(f"{name}, after line {number}: no {encoding} ({error}). Save the file as UTF-8.") from error
    finally:
        if not stream.closed:  # an error before the last line closes it
            text.detach()
