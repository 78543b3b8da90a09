"""The library of our C: compiled once, found again, and done without where that cannot be."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from manyheads.decoding.native import build

SMALL = "int answer(void) { return 7; }\n"
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, build.COMPILERS)), reason="no C compiler here")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small program in the place of ours, and a cache of its own."""
    (tmp_path / "decoder.c").write_text(SMALL)
    monkeypatch.setattr(build, "__file__", str(tmp_path / "build.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "check_interface", lambda _: None)  # the small program has none of our functions
    monkeypatch.delenv(build.SWITCH, raising=False)
    build.load.cache_clear()
    yield tmp_path
    build.load.cache_clear()


def kept(source: Path) -> list[str]:
    """What stands in the cache."""
    return sorted(path.name for path in (source / "cache" / "manyheads").iterdir())


@needs_compiler
def test_it_is_compiled_once_and_anew_when_its_source_changes(source, monkeypatch) -> None:
    assert build.library().answer() == 7
    first = kept(source)
    assert [name.partition("-")[0] for name in first] == ["decoder"]
    assert first[0].endswith(".so")
    build.load.cache_clear()
    monkeypatch.setattr(build, "compiled", lambda *_: pytest.fail("it was there"))
    assert build.library().answer() == 7
    monkeypatch.undo()


@needs_compiler
def test_another_source_is_another_library(source) -> None:
    build.library()
    (source / "decoder.c").write_text(SMALL.replace("7", "11"))
    build.load.cache_clear()
    assert build.library().answer() == 11
    assert len(kept(source)) == 2


@needs_compiler
def test_a_cache_that_others_can_write_to_is_not_trusted(source) -> None:
    folder = source / "cache" / "manyheads"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert build.library().answer() == 7
    assert kept(source) == []


@pytest.mark.parametrize("broken", ["int answer(void) {", "#error no"])
def test_what_does_not_compile_is_no_library_and_leaves_nothing(source, broken) -> None:
    (source / "decoder.c").write_text(broken)
    assert build.library() is None
    assert kept(source) == []


def test_without_a_compiler_or_when_told_so_there_is_none(source, monkeypatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.delenv("CC", raising=False)
    assert build.library() is None
    build.load.cache_clear()
    monkeypatch.undo()
    monkeypatch.setenv(build.SWITCH, "0")
    assert build.library() is None


def test_a_library_that_cannot_be_opened_is_none(source) -> None:
    path = source / "decoder.so"
    path.write_bytes(b"no library")
    library, reason = build.opened(path)
    assert library is None
    assert "decoder.so" in reason
