"""Reading text: line ends, invalid UTF-8 and damaged files (FAULTS rows 1 to 4)."""

from __future__ import annotations

import gzip
import io
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bitext import lines
from bitext.errors import DataError, MissingExtraError
from bitext.lines import Line, count_lines, decode_lines, read_decoded, read_lines


def write_file(folder: Path, content: bytes, name: str = "text.de") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def zstd(content: bytes) -> bytes:
    packed: bytes = pytest.importorskip("zstandard").ZstdCompressor().compress(content)
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd}


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\ufeff"))))
def test_lines_end_at_line_feeds_and_nowhere_else(texts: list[str]) -> None:
    content = "".join(f"{text}\n" for text in texts).encode()
    assume(content.count(b"\x00") < 4)  # else it may rightly be taken for UTF-16
    assert list(decode_lines(io.BytesIO(content), "x")) == [Line(text, 0) for text in texts]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\x1d", "\x1e", "\r"])
def test_other_line_separators_of_unicode_do_not_end_a_line(tmp_path: Path, mark: str) -> None:
    path = write_file(tmp_path, f"ein{mark}Hund\nzwei\n".encode())
    assert list(read_lines(path)) == [f"ein{mark}Hund", "zwei"]
    assert count_lines(path) == 2


def test_windows_line_ends_and_a_byte_order_mark_are_removed(tmp_path: Path) -> None:
    clean = list(read_lines(write_file(tmp_path, "Größe\n\nzwei\n".encode())))
    assert list(read_lines(write_file(tmp_path, b"\xef\xbb\xbf" + "Größe\r\n\r\nzwei\r\n".encode()))) == clean


def test_only_one_carriage_return_and_only_the_first_byte_order_mark_are_removed(tmp_path: Path) -> None:
    path = write_file(tmp_path, "\ufeffa\r\r\n\ufeffb\n".encode())
    assert list(read_lines(path)) == ["a\r", "\ufeffb"]


@pytest.mark.parametrize(("content", "expected"), [("", []), ("\n", [""]), ("a", ["a"]), ("a\n\n", ["a", ""])])
def test_the_last_line_feed_may_be_missing(tmp_path: Path, content: str, expected: list[str]) -> None:
    path = write_file(tmp_path, content.encode())
    assert list(read_lines(path)) == expected
    assert count_lines(path) == len(expected)


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_compressed_file_is_read_like_a_plain_file(tmp_path: Path, suffix: str) -> None:
    content = "".join(f"Zeile {number} mit Grüßen\n" for number in range(20_000)).encode()
    path = write_file(tmp_path, PACKERS[suffix](content), f"x{suffix}")
    assert list(read_lines(path)) == content.decode().split("\n")[:-1]
    assert count_lines(path) == 20_000


@pytest.mark.parametrize("suffix", PACKERS)
def test_concatenated_compressed_parts_are_one_file(tmp_path: Path, suffix: str) -> None:
    path = write_file(tmp_path, b"".join(PACKERS[suffix](part) for part in (b"a\nb", b"", b"c\n")), f"x{suffix}")
    assert list(read_lines(path)) == ["a", "bc"]


def test_skippable_frames_of_a_zst_file_are_skipped(tmp_path: Path) -> None:
    skipped = (0x184D2A50).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"12345"
    path = write_file(tmp_path, zstd(b"a\n") + skipped + zstd(b"b\n"), "x.zst")
    assert list(read_lines(path)) == ["a", "b"]


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("read", [lambda path: list(read_lines(path)), count_lines])
@pytest.mark.parametrize("kept", [0, 30, -1])
def test_a_truncated_file_is_named(tmp_path: Path, suffix: str, read: Callable[[Path], object], kept: int) -> None:
    packed = PACKERS[suffix](b"".join(b"%d " % number**5 for number in range(5_000)))
    path = write_file(tmp_path, packed[:kept], f"x{suffix}")
    with pytest.raises(DataError, match=rf"x\{suffix} is truncated"):
        read(path)


def overwritten(packed: bytes) -> bytes:
    return packed[: len(packed) // 2] + b"\xff" * 8 + packed[len(packed) // 2 + 8 :]


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_damaged_or_wrongly_named_file_is_named(tmp_path: Path, suffix: str) -> None:
    numbers = PACKERS[suffix](b"".join(b"%d " % number**5 for number in range(5_000)))
    for name, content, message in (
        (f"x{suffix}", overwritten(numbers), rf"x\{suffix} is damaged"),
        (f"x{suffix}", b"only text, quite long enough\n", rf"x\{suffix} is damaged or not what its name says"),
        ("text.de", PACKERS[suffix](b"a\n"), rf"text\.de holds compressed data.*ends in \{suffix}"),
    ):
        with pytest.raises(DataError, match=message):
            list(read_lines(write_file(tmp_path, content, name)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\x14\0", "is a zip archive or an office document, not text, whatever its name says"),
        (b"%PDF-1.7\n", "is PDF, not text, whatever its name says"),
        (b"\xd0\xcf\x11\xe0\xa1", "is an office document, not text, whatever its name says"),
        ("안녕하세요\n".encode("cp949"), "iconv -f CP949 -t UTF-8"),
        ("똠얌꿍 하나\n".encode("cp949"), "iconv -f CP949 -t UTF-8"),  # a syllable that EUC-KR lacks
        ("„Größe“ – naïve\n".encode("cp1252"), "iconv -f CP1252 -t UTF-8"),
        ("für Größe\n".encode("latin1"), "iconv -f LATIN1"),
        ("Ärzte und Öfen\n".encode("latin1"), "iconv -f LATIN1"),
    ],
)
def test_content_that_is_no_utf8_text_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=rf"text\.de.*{message}"):
        list(read_lines(write_file(tmp_path, content)))


def test_bytes_that_are_no_utf8_are_named_by_file_line_and_offset(tmp_path: Path) -> None:
    path = write_file(tmp_path, b"\xef\xbb\xbfeins\r\nzw\xc3\xb6lf\nf\xfcr dich\n")
    with pytest.raises(DataError) as caught:
        list(read_lines(path))
    offset = path.read_bytes().index(b"\xfc")
    assert f"{path}, line 3: byte 0xFC at offset {offset} of the file" in str(caught.value)
    assert "LATIN1" in str(caught.value)
    assert "--replace-invalid" in str(caught.value)


def test_on_request_invalid_bytes_are_replaced_and_counted(tmp_path: Path) -> None:
    path = write_file(tmp_path, b"gut\nf\xfcr \xff\xfe\nschon \xef\xbf\xbd da\n\xe2\x82\n")
    found = list(read_decoded(path, invalid_utf8="replace"))
    assert [line.replaced for line in found] == [0, 3, 0, 2]
    assert found[1].text == "f\ufffdr \ufffd\ufffd"
    assert list(read_lines(path, invalid_utf8="replace")) == [line.text for line in found]


@pytest.mark.parametrize(
    ("encoding", "named"),
    [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE"), ("utf-32", "UTF-32")],
)
@pytest.mark.parametrize("invalid_utf8", ["error", "replace"])
def test_utf16_and_utf32_are_refused_by_name_even_if_invalid_bytes_are_replaced(
    tmp_path: Path, encoding: str, named: str, invalid_utf8: lines.InvalidUtf8
) -> None:
    path = write_file(tmp_path, "Ein Hund läuft.\nZwei\n".encode(encoding))
    with pytest.raises(DataError, match=rf"text\.de is {named} .*iconv -f {named} -t UTF-8"):
        list(read_lines(path, invalid_utf8=invalid_utf8))


def test_a_few_nuls_do_not_make_a_file_utf16(tmp_path: Path) -> None:
    text = "ein \0 Hund\0 läuft \0\0 über die \0 Straße\0\n"
    assert list(read_lines(write_file(tmp_path, text.encode()))) == [text[:-1]]


@pytest.mark.parametrize("name", ["nowhere.de", "nowhere.de.gz", "nowhere.de.xz", "nowhere.de.zst", "."])
def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"cannot be read: (No such file|Is a directory)"):
        list(read_lines(tmp_path / name))


def test_a_line_longer_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 100)
    assert list(read_lines(write_file(tmp_path, b"a" * 99 + b"\n" + b"b" * 99))) == ["a" * 99, "b" * 99]
    with pytest.raises(DataError, match=r"text\.de, line 2: longer than 100 bytes"):
        list(read_lines(write_file(tmp_path, b"a\n" + b"b" * 101)))


def test_zst_without_its_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r'pip install "bitext\[zstd\]"'):
        list(read_lines(write_file(tmp_path, b"\x28\xb5\x2f\xfd", "x.zst")))


def test_a_large_file_is_read_in_little_memory(tmp_path: Path) -> None:
    path = write_file(tmp_path, gzip.compress(b"x" * 99 * 1_000 + b"\n", 1) * 2_000, "x.gz")  # 198 MB of text
    program = (
        "import resource, sys; from pathlib import Path; from bitext.lines import read_lines\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert sum(map(len, read_lines(Path(sys.argv[1])))) == 198_000_000\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    pytest.importorskip("resource")
    grown = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert int(grown.stdout) < 20_000  # KiB
