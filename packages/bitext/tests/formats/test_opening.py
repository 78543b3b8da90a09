"""Compressed and plain files are opened; damaged files and decompression bombs are named."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
from pathlib import Path

import pytest

from bitext.errors import DataError
from bitext.formats.opening import check_ratio, open_input, text_lines

TEXT = "Grüße\r\n\nc\u2028\x85d\r"


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_lines_of_compressed_text_are_read_exactly_in_each_encoding(
    tmp_path: Path, ending: str, encoding: str
) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}.get(ending)
    if pack is None:
        pack = pytest.importorskip("zstandard").compress
    path = tmp_path / f"x.txt{ending}"
    path.write_bytes(pack((TEXT + "한국어 text\n" * 9).encode(encoding)))
    with open_input(path) as stream:
        assert list(text_lines(stream, "x")) == ["Grüße", "", "c\u2028\x85d\r한국어 text", *["한국어 text"] * 8]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.gz", b"", "is truncated"),
        ("x.gz", gzip.compress(b"abc" * 99, mtime=0)[:-3], "is truncated"),
        ("x.xz", gzip.compress(b"abc", mtime=0), "is damaged or not what its name says"),
        ("x.gz", gzip.compress(bz2.compress(b"a"), mtime=0)[:-8] + b"12345678", "is damaged"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name} {message}"), open_input(tmp_path / name) as stream:
        stream.read()


def test_bytes_of_another_encoding_are_named() -> None:
    with pytest.raises(DataError, match="x, after line 0: no UTF-16"):
        list(text_lines(io.BufferedReader(io.BytesIO("ab\n".encode("utf-16") + b"\x00\xd8a\x00")), "x"))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="nowhere cannot be read"):
        open_input(Path("nowhere"))


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_a_decompression_bomb_is_refused_in_constant_memory(tmp_path: Path, ending: str) -> None:
    block = b"\n" * (1 << 20)
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(ending) or pytest.importorskip("zstandard").compress
    path = tmp_path / f"x{ending}"
    path.write_bytes(pack(block) * 1_000)
    tracemalloc.start()
    with pytest.raises(DataError, match=rf"x{ending} unpacks to more than 200 times"):
        open_input(path)  # before any of its text is converted
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def test_small_zstandard_blocks_are_not_decompressed_to_large_ones_at_once(tmp_path: Path) -> None:
    """Each block of four bytes repeats one byte 131,072 times."""
    pytest.importorskip("zstandard")
    block = ((131_072 << 3) + 2).to_bytes(3, "little") + b"\n"
    (tmp_path / "x.zst").write_bytes(b"\x28\xb5\x2f\xfd\x00\x38" + block * 30_000)
    tracemalloc.start()
    with pytest.raises(DataError, match="unpacks to more than 200 times"):
        open_input(tmp_path / "x.zst")
    assert tracemalloc.get_traced_memory()[1] < 40e6
    tracemalloc.stop()


def test_an_error_before_the_last_line_of_utf_16_leaves_no_warning() -> None:
    stream = io.BufferedReader(io.BytesIO("a\nb\n".encode("utf-16")))  # type: ignore[arg-type]
    lines = text_lines(stream, "x")
    next(lines)
    stream.close()
    lines.close()  # type: ignore[attr-defined]


def test_text_that_compresses_well_is_no_bomb() -> None:
    check_ratio(1 << 30, 1 << 23, "x")
    check_ratio(1 << 20, 1, "x")
