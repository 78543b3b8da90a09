"""Lines are read and results written as UTF-8, whatever the locale."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Call
from tests.stdin import set_stdin

from faults import full_disk
from manyheads.cli.main import run
from manyheads.cli.progress import Progress
from manyheads.cli.streams import input_lines, line_progress, numbers_text, open_output, write_json
from manyheads.errors import DataError, WriteError
from manyheads.reports import Advance

GOLDEN = Path(__file__).parent.parent / "golden" / "format-1" / "run"
CORPUS = GOLDEN.with_name("corpus")


def test_standard_input_ends_lines_at_line_feeds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    set_stdin(monkeypatch, "a\u2028b\x85c\n\n가\r\nd".encode())
    assert list(input_lines(Path("-"))) == ["a\u2028b\x85c", "", "가", "d"]
    set_stdin(monkeypatch, b"ok\nStra\xdfe\n")
    with pytest.raises(DataError, match=r"standard input, line 2: byte 0xDF at offset 7 "):
        list(input_lines(Path("-")))


def test_a_json_document_is_valid_even_with_half_a_character() -> None:
    stream = io.BytesIO()
    write_json({"text": "가\udc80"}, stream)
    assert json.loads(stream.getvalue().decode()) == {"text": "가\udc80"}


def test_the_first_ten_line_numbers_are_named() -> None:
    assert numbers_text([3, 5]) == "3, 5"
    assert numbers_text(range(1, 12)) == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..."


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stderr", "shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_the_progress_of_lines_is_shown_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, shown: bool
) -> None:
    phases: list[tuple[str, int | None, str]] = []

    class Recorder(Progress):
        def phase(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
            phases.append((name, total, unit))
            return super().phase(name, total, unit)

    file = tmp_path / "text"
    file.write_bytes(b"one\ntwo\nthree")
    monkeypatch.setattr("manyheads.cli.progress.open_progress", lambda *_: nullcontext(Recorder()))
    monkeypatch.setattr(sys, "stderr", stderr)
    output = (tmp_path / "out").open("wb")
    with click.Context(click.Command("translate")), output, line_progress("translating", file, output) as advance:
        advance(2)
    assert phases == ([("translating", 3, "lines")] if shown else [])


def test_the_progress_of_lines_is_not_mixed_with_an_output_on_the_same_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Output(io.BytesIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("manyheads.cli.progress.open_progress", lambda *_: pytest.fail("the progress is shown"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    with line_progress("translating", tmp_path / "text", Output()) as advance:
        advance(1)


# --- outputs ---


def write_output(path: Path, content: bytes = b"new") -> None:
    with open_output(path) as file:
        file.write(content)


def test_an_output_that_another_process_writes_is_not_touched(tmp_path: Path) -> None:
    with open_output(tmp_path / "out") as file:
        file.write(b"first")
        file.flush()
        with pytest.raises(WriteError, match="another process"):
            write_output(tmp_path / "out")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["out", "out.gz", "link"])
def test_an_older_file_stays_until_the_new_one_is_complete(tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to("out")
    (tmp_path / "out.gz").write_bytes(b"old")
    (tmp_path / "out").write_bytes(b"old")
    (tmp_path / "out").chmod(0o640)
    with (
        full_disk(10),
        pytest.raises(WriteError, match=r"out(\.gz)? cannot be written: File too large"),
        open_output(tmp_path / name) as file,
    ):
        file.writelines(os.urandom(10) for _ in range(10_000))
    with suppress(KeyboardInterrupt), open_output(tmp_path / name) as file:
        file.write(b"half")
        file.flush()
        raise KeyboardInterrupt
    assert (tmp_path / name).read_bytes() == b"old"
    write_output(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out", "out.gz"]
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


OUTPUTS = {
    "score": (GOLDEN, CORPUS / "test.de", CORPUS / "test.en"),
    "translate": (GOLDEN, "--json", CORPUS / "test.de"),
    "evaluate": (GOLDEN, "--source-file", CORPUS / "test.de", "--reference-file", CORPUS / "test.en"),
    "inspect": (GOLDEN, "der Hund", "--no-occlusion"),
    "curves": (GOLDEN,),
    "doctor": (),
}


@pytest.mark.parametrize("verb", OUTPUTS)
def test_a_full_disk_leaves_the_older_output_of_a_verb(verb: str, tmp_path: Path, call: Call) -> None:
    path = tmp_path / ("out.svg" if verb == "curves" else "out.html")
    path.write_bytes(b"old")
    with full_disk(9):
        err = call(verb, "-q", *OUTPUTS[verb], "-o", path, code=3).err
    assert err.startswith(f"error: {path} cannot be written: File too large. ")
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == b"old"
    run([verb, "-q", *map(str, OUTPUTS[verb]), "-o", str(path)])
    assert path.read_bytes() != b"old"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and pipes of POSIX")
def test_links_are_written_through_and_pipes_and_devices_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    write_output(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    os.mkfifo(tmp_path / "pipe")
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    read: list[bytes] = []
    reader.start()
    write_output(tmp_path / "pipe")
    reader.join()
    assert read == [b"new"]
    write_output(Path("/dev/null"))
    assert (tmp_path / "pipe").is_fifo()
