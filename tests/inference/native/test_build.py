"""The library of the C code: compiled once, cached, and replaced by torch where it cannot be compiled."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.inference.native import build

SMALL = "int answer(void) { return 7; }\n"
PROGRESS = "compiling the CPU decoder, about 7 s\n"
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, build._COMPILERS)), reason="no C compiler here")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder whose small program replaces the decoder, with a cache of its own."""
    (tmp_path / "decoder.c").write_text(SMALL)
    monkeypatch.setattr(build, "__file__", str(tmp_path / "build.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "check_interface", lambda _: None)  # the small program has none of our functions
    monkeypatch.delenv(build._SWITCH, raising=False)
    monkeypatch.delenv("CC", raising=False)
    build._load.cache_clear()
    yield tmp_path
    build._load.cache_clear()


@pytest.fixture
def install_compiler(source: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Install a shell script as the compiler; each of its calls adds a line to the file `calls`."""

    def install(script: str) -> None:
        program = source / "compiler"
        program.write_text(f"#!/bin/sh\necho call >> {source / 'calls'}\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("CC", str(program))

    return install


def forget_library() -> None:
    """Forget the loaded library, as if in a new process."""
    build._load.cache_clear()


def cached(source: Path) -> list[str]:
    """Return the names of the files in the cache."""
    return sorted(path.name for path in (source / "cache" / "manyheads").iterdir())


def calls(source: Path) -> int:
    """Return how often the compiler was called."""
    return len((source / "calls").read_text().splitlines())


def test_a_library_of_this_machine_agrees_with_the_headers() -> None:
    """Where it does not, there is no library, and every test of the C code would be skipped."""
    assert not re.search(r" in C, |has no function", build.why_none())


@needs_compiler
def test_the_library_is_compiled_once_and_the_progress_goes_to_stderr(source, capfd, monkeypatch) -> None:
    assert build.library().answer() == 7
    assert capfd.readouterr() == ("", PROGRESS)
    (name,) = cached(source)
    assert name.startswith("decoder-")
    assert name.endswith(".so")
    forget_library()
    monkeypatch.setattr(build, "_compile_library", lambda *_: pytest.fail("the library was cached"))
    assert build.library().answer() == 7
    assert capfd.readouterr() == ("", "")
    assert build.origin(build.library()) == str(source / "cache" / "manyheads" / name)


@needs_compiler
def test_another_source_is_another_library(source) -> None:
    build.library()
    (source / "decoder.c").write_text(SMALL.replace("7", "11"))
    forget_library()
    assert build.library().answer() == 11
    assert len(cached(source)) == 2


@needs_compiler
def test_another_compiler_is_another_library(source, install_compiler) -> None:
    install_compiler('exec cc "$@"')
    build.library()
    forget_library()
    build.library()
    assert (calls(source), len(cached(source))) == (1, 1)
    install_compiler('exec cc -DNEW "$@"')
    forget_library()
    assert build.library().answer() == 7
    assert (calls(source), len(cached(source))) == (2, 2)


@needs_compiler
def test_a_library_is_used_after_its_compiler_was_removed(source, monkeypatch) -> None:
    build.library()
    forget_library()
    monkeypatch.setenv("PATH", os.devnull)
    assert build.library().answer() == 7
    assert len(cached(source)) == 1


@needs_compiler
def test_libraries_of_other_versions_are_removed_when_they_were_not_used_for_a_day(source) -> None:
    build.library()
    folder = source / "cache" / "manyheads"
    (first,) = folder.iterdir()
    this_version = folder / f"decoder-{first.name.split('-')[1]}-other-processor.so"
    recent, foreign = folder / "decoder-0-recent-0.so", folder / "something-else"
    for path in (this_version, recent, foreign):
        path.write_text("")
    killed = folder / ".draft-0-killed"
    killed.mkdir()
    (killed / "x.so").write_text("")
    two_days_ago = time.time() - 2 * 86_400
    for path in (first, this_version, foreign, killed):
        os.utime(path, (two_days_ago, two_days_ago))
    forget_library()
    build.library()
    assert len(cached(source)) == 4, "files of this version, of recent use, or of other programs"
    (source / "decoder.c").write_text(SMALL.replace("7", "11"))
    forget_library()
    assert build.library().answer() == 11
    assert first.name in cached(source), "used in the last day"
    assert this_version.name not in cached(source)
    os.utime(first, (two_days_ago, two_days_ago))
    forget_library()
    build.library()
    assert first.name not in cached(source)
    assert {recent.name, foreign.name} <= set(cached(source))


WAIT_FOR_SECOND_PROCESS = """
while [ "$(wc -l < {calls})" -lt 2 ]; do sleep 0.02; done
exec cc "$@"
"""
PROCESS = """
import sys
from manyheads.inference.native import build
build.__file__, build.check_interface = sys.argv[1], lambda _: None
print(build.library().answer())
"""


@needs_compiler
def test_two_processes_that_compile_at_once_both_have_the_library(source, install_compiler) -> None:
    install_compiler(WAIT_FOR_SECOND_PROCESS.format(calls=source / "calls"))
    command = [sys.executable, "-c", PROCESS, str(source / "build.py")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=300)[0] for process in processes] == ["7\n", "7\n"]
    assert calls(source) == 2
    assert [name.endswith(".so") for name in cached(source)] == [True]


def replace_bytes(path: Path, content: bytes) -> None:
    path.unlink()  # this process has the file open
    path.write_bytes(content)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").touch()


def replace_by_link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: replace_bytes(path, path.read_bytes()[:100]),  # a longer part would kill this process
    "one bit": lambda path: replace_bytes(path, path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])),
    "unreadable": lambda path: path.chmod(0),
    "a folder": replace_by_folder,
    "a link": replace_by_link,
    "a pipe": replace_by_pipe,
}


@needs_compiler
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_library_in_the_cache_is_compiled_again(source, damage, capfd) -> None:
    if damage == "unreadable" and os.getuid() == 0:
        pytest.skip("root can read everything")
    build.library()
    (name,) = cached(source)
    DAMAGES[damage](source / "cache" / "manyheads" / name)
    for progress in (PROGRESS, ""):
        capfd.readouterr()
        forget_library()
        assert build.library().answer() == 7
        assert capfd.readouterr() == ("", progress)
        assert len(cached(source)) == 1


@needs_compiler
def test_a_library_that_the_cache_cannot_hold_is_used(source, monkeypatch) -> None:
    def replace(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(build.os, "replace", replace)
    assert build.library().answer() == 7
    assert build.origin(build.library()) == "compiled for this process, without a cache"
    assert cached(source) == []


def test_a_compiler_without_space_is_tried_again(source, install_compiler) -> None:
    install_compiler("echo 'error: x.s: No space left on device' >&2; exit 1")
    assert build.library() is None
    assert cached(source) == []


@needs_compiler
@pytest.mark.parametrize("open_to_others", ["manyheads", "."])
def test_a_cache_that_others_can_write_to_is_not_trusted(source, open_to_others) -> None:
    folder = source / "cache" / "manyheads"
    folder.mkdir(parents=True)
    (source / "cache" / open_to_others).chmod(0o777)
    assert build.library().answer() == 7
    assert build.origin(build.library()) == "compiled for this process, without a cache"
    assert cached(source) == []


def test_a_failure_is_reported_with_its_reason_and_not_repeated(source, install_compiler, capfd) -> None:
    install_compiler("echo 'In file included from x:\ndecoder.c:1:5: error: no such thing\nmore' >&2\nexit 1")
    assert build.library() is None
    output, errors = capfd.readouterr()
    (failure,) = (source / "cache" / "manyheads").iterdir()
    assert output == ""
    assert errors.startswith(PROGRESS)
    assert str(failure) in errors
    assert failure.read_text().startswith("In file included from x:\ndecoder.c:1:5: error: no such thing\nmore\n")
    assert str(source / "compiler") in failure.read_text(), "the command"
    expected = f"{source / 'compiler'} cannot compile it: decoder.c:1:5: error: no such thing; see {failure}"
    assert build.why_none().startswith(expected)
    forget_library()
    assert build.library() is None
    assert build.why_none().startswith(expected)
    assert calls(source) == 1
    assert capfd.readouterr() == ("", "")


@needs_compiler
@pytest.mark.parametrize("change", ["compiler", "source", "file removed"])
def test_after_a_failure_the_library_is_compiled_again_when_an_input_has_changed(
    source, install_compiler, change
) -> None:
    install_compiler(f'[ -e {source / "works"} ] && exec cc "$@"\nexit 1')
    assert build.library() is None
    (source / "works").touch()
    forget_library()
    assert build.library() is None
    if change == "compiler":
        install_compiler('exec cc "$@"')
    elif change == "source":
        (source / "decoder.c").write_text(SMALL + "\n")
    else:
        (source / "cache" / "manyheads" / cached(source)[0]).unlink()
    forget_library()
    assert build.library().answer() == 7


@needs_compiler
@pytest.mark.parametrize("broken", ["int answer(void) {", "#error no"])
def test_source_that_does_not_compile_leaves_only_a_file_with_the_message(source, broken) -> None:
    (source / "decoder.c").write_text(broken)
    assert build.library() is None
    assert "error: " in build.why_none()
    assert [Path(name).suffix for name in cached(source)] == [".failed"]


@needs_compiler
@pytest.mark.parametrize(("script", "reason"), [("kill -TERM $$", "SIGTERM"), ("exec sleep 600", "timed out")])
def test_a_compiler_that_was_ended_is_tried_again(source, install_compiler, script, reason, monkeypatch) -> None:
    install_compiler(script)
    with monkeypatch.context() as patched:
        patched.setattr(build, "_COMPILER_TIMEOUT", 1)
        assert build.library() is None
    assert reason in build.why_none()
    assert cached(source) == []
    install_compiler('exec cc "$@"')
    forget_library()
    assert build.library().answer() == 7


def test_a_compiler_that_cannot_be_started_is_the_reported_reason(source, monkeypatch) -> None:
    monkeypatch.setenv("CC", "/no/such/compiler -O1")
    assert build.library() is None
    assert "No such file or directory: '/no/such/compiler'" in build.why_none()


def test_the_reason_is_reported_without_a_cache(source, install_compiler) -> None:
    install_compiler("echo 'decoder.c:1:5: error: no such thing' >&2; exit 1")
    folder = source / "cache" / "manyheads"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert build.library() is None
    assert build.why_none() == "decoder.c:1:5: error: no such thing"


def test_no_library_is_loaded_without_a_compiler_or_when_switched_off(source, monkeypatch, capfd) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    assert build.library() is None
    assert build.why_none() == "no C compiler (cc, gcc, clang)"
    assert (capfd.readouterr(), cached(source)) == (("", ""), [])
    forget_library()
    monkeypatch.undo()
    monkeypatch.setenv(build._SWITCH, "0")
    assert build.library() is None
    assert build.why_none() == "MANYHEADS_NATIVE=0"


def test_a_library_that_cannot_be_opened_is_reported(source) -> None:
    path = source / "decoder.so"
    path.write_bytes(b"no library")
    library, reason = build._open_library(path)
    assert library is None
    assert "decoder.so" in reason


def test_the_instruction_set_is_that_of_torch() -> None:
    capability = torch.backends.cpu.get_cpu_capability()
    found = build.instruction_set()
    assert found == capability or (capability == "DEFAULT" and found == "SSSE3")


@pytest.mark.parametrize(
    ("baseline", "found", "best"),
    [
        (["X86_V2"], ["X86_V3", "X86_V4", "AVX512_ICL"], "AVX512"),
        (["X86_V2"], ["X86_V3"], "AVX2"),
        (["X86_V3"], None, "AVX2"),
        (["X86_V2"], None, "SSSE3"),
        (["SSE", "SSE2", "SSE3"], ["SSSE3", "FMA3", "AVX2", "AVX512F", "AVX512_SKX"], "AVX512"),
        (["SSE", "SSE2", "SSE3"], ["SSSE3", "AVX", "FMA3", "AVX2", "AVX512F", "AVX512_KNL"], "AVX2"),
        (["SSE", "SSE2", "SSE3"], ["SSSE3", "AVX"], "SSSE3"),
        (["SSE", "SSE2", "SSE3"], None, "DEFAULT"),
        (["NEON", "ASIMD"], ["ASIMDHP"], "DEFAULT"),
    ],
    ids=str,
)
def test_the_instruction_set_is_that_of_numpy_and_can_only_be_lowered(
    baseline: list[str], found: list[str] | None, best: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    extensions = {"baseline": baseline} | ({} if found is None else {"found": found})
    monkeypatch.setattr(np, "show_config", lambda mode: {"SIMD Extensions": extensions})
    levels = ["DEFAULT", "SSSE3", "AVX2", "AVX512"]
    for wanted, limit in ((None, "AVX512"), ("default", "SSSE3"), ("avx2", "AVX2"), ("avx512", "AVX512")):
        monkeypatch.setenv("ATEN_CPU_CAPABILITY", wanted or "")
        assert build.instruction_set() == min(best, limit, key=levels.index)


# --- libraries of a wheel ---


@pytest.fixture
def shipped(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library as a wheel brings it, for this processor; its function returns another number."""
    program = tmp_path_factory.mktemp("wheel") / "decoder.c"
    program.write_text(SMALL.replace("7", "13"))
    compiled = build._compile_library(program, program.with_suffix(".so"))
    folder = source / build.SHIPPED
    folder.mkdir()
    path = folder / build.shipped_name(build.instruction_set(), compiled.read_bytes())
    shutil.copyfile(compiled, path)
    return path


@needs_compiler
def test_the_library_of_a_wheel_is_opened_and_nothing_is_compiled_or_cached(source, shipped, monkeypatch) -> None:
    monkeypatch.setattr(build, "_compile_library", lambda *_: pytest.fail("the wheel has a library"))
    assert build.library().answer() == 13
    assert build.origin(build.library()) == str(shipped)
    assert not (source / "cache").exists()


@needs_compiler
def test_a_damaged_library_of_a_wheel_is_named_and_compiled_here(source, shipped, capfd) -> None:
    """A library that is cut would kill the process when a function of it is called."""
    capfd.readouterr()
    shipped.write_bytes(shipped.read_bytes()[:-5000])
    assert build.library().answer() == 7
    assert capfd.readouterr().err == f"{shipped} is damaged: install manyheads again\n{PROGRESS}"


@needs_compiler
def test_a_library_of_a_wheel_for_another_system_is_named_and_compiled_here(source, shipped, capfd) -> None:
    capfd.readouterr()
    shipped.unlink()
    content = b"\xcf\xfa\xed\xfe of another system"
    path = shipped.with_name(build.shipped_name(build.instruction_set(), content))
    path.write_bytes(content)
    assert build.library().answer() == 7
    error, progress = capfd.readouterr().err.splitlines(keepends=True)
    assert str(path) in error
    assert error.endswith(": install manyheads again\n")
    assert progress == PROGRESS
