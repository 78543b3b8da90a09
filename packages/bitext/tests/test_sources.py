"""The note of sources of a text is found by its file names, and holds the data for model cards."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from bitext.errors import DataError
from bitext.sources import TextSource, read_sources, sources_path, write_sources

SOURCE = TextSource("x.tmx", "TMX", {"x.tmx": "ab"}, 1_234, 5, "CC BY\n4.0", "Tatoeba")


@pytest.mark.parametrize("name", ["my.text.de.gz", "my.text.en", "my.text.ko.zst", "my.text.tsv"])
def test_all_files_of_a_text_have_one_note(name: str) -> None:
    assert sources_path(Path("a") / name) == Path("a/my.text.sources.json")


def test_sources_are_restored_from_their_note_without_repetition(tmp_path: Path) -> None:
    write_sources(tmp_path / "x.sources.json", [SOURCE, SOURCE], manyheads="1")
    assert read_sources([tmp_path / "x.de.gz", tmp_path / "x.en.gz", tmp_path / "y.en"]) == [SOURCE]
    assert SOURCE.line() == "Tatoeba (x.tmx): 1,234 pairs; licence: CC BY 4.0"
    assert TextSource("y", "lines", {}, 1, 0, None, None).line() == "y: 1 pairs; licence: not stated"


def test_a_note_that_cannot_be_read_has_the_cure_of_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **kwargs: str) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "x.sources.json").touch()
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(DataError, match=r"x\.sources\.json is no note .*Check who may read and write there"):
        read_sources([tmp_path / "x.de"])


@pytest.mark.parametrize("content", ["", "{}", '{"sources": [{"file": "x"}]}', '{"sources": 1}'])
def test_a_broken_note_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.sources.json").write_text(content)
    with pytest.raises(DataError, match=r"x\.sources\.json is no note of sources"):
        read_sources([tmp_path / "x.de"])


def test_a_note_of_any_size_and_depth_is_refused_in_little_memory(tmp_path: Path) -> None:
    note = tmp_path / "x.sources.json"
    for write in (lambda: note.write_text("[" * 200_000, encoding="utf-8"), lambda: os.truncate(note, 2**40)):
        write()
        with pytest.raises(DataError, match=r"x\.sources\.json is no note of sources"):
            read_sources([tmp_path / "x.de"])
