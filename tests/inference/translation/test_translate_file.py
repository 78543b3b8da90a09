"""Files that are translated in shards give the bytes of plain lines, wherever the shards are computed."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.inference.translation.test_parts import KNOWN
from tests.inference.translation.test_translator import make_translator, save_run
from tests.stdin import set_stdin

from bitext import executors
from bitext.lines import read_lines
from clusters import LIMIT, Cluster, wait_for
from manyheads import __version__
from manyheads.cli.main import run
from manyheads.errors import RunError
from manyheads.inference.translation import translate_file as module
from manyheads.inference.translation.translate_file import (
    COLUMNS,
    Shard,
    TranslationJob,
    _shards_folder,
    _translate_shard,
    output_lines,
    translate_file,
    warnings_of,
)
from manyheads.inference.translation.translator import Candidate, Translation
from manyheads.search.options import SearchOptions

LINES = ["Abc. Def.", "", "   ", "ghi\u2028k", "abcdefgh, " * 9, "한글", "a\tb", "ihg"]
BEAM = ["--beam", "2", "--device", "cpu"]
Worker = Callable[[TranslationJob, str, Shard], bytes]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_translator(end_bias=0.5, letters=KNOWN, data={"max_length": 35})
    return save_run(made, tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.de"
    path.write_text("\n".join(LINES * 5) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALL_LINES", 3)
    monkeypatch.setattr(module, "SHARD_LINES", 6)


def text_of(path: Path) -> bytes:
    """Return the content of a compressed file."""
    return b"".join(f"{line}\n".encode() for line in read_lines(path))


def plain(
    trained: Path, text: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str, name: str = "plain.out"
) -> bytes:
    """Return the output of `translate` for a text on standard input."""
    set_stdin(monkeypatch, text.read_bytes())
    out = text.with_name(name)
    assert run(["translate", str(trained), *BEAM, "-o", str(out), *arguments]) == 0
    return out.read_bytes()


def from_file(trained: Path, text: Path, out: Path, *arguments: str, code: int = 0) -> bytes:
    """Return the output of `translate` for a file."""
    assert run(["translate", str(trained), str(text), *BEAM, "-o", str(out), *arguments]) == code
    return out.read_bytes() if code == 0 else b""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--n-best", "2"],
        ["--columns", "score,truncated,repeated"],
        ["--alignment"],
        ["--sample", "--top-k", "5", "--seed", "3"],
        ["--set", "search.length_penalty=0.3"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("small_shards")
def test_shards_give_the_bytes_of_plain_lines(trained, text, tmp_path, monkeypatch, arguments) -> None:
    monkeypatch.setattr("manyheads.cli.streams.CALL_LINES", 3)
    expected = plain(trained, text, monkeypatch, *arguments)
    assert expected.count(b"\n") >= len(LINES)
    assert from_file(trained, text, tmp_path / "out", *arguments) == expected
    if "--n-best" in arguments:
        assert from_file(trained, text, tmp_path / "two", *arguments, "--workers", "2") == expected
    assert not _shards_folder(tmp_path / "out").exists()


def test_constraints_are_applied_to_their_lines(trained, text, tmp_path, monkeypatch, small_shards) -> None:
    companion = tmp_path / "prefix"
    companion.write_text("".join(f"{'k' * (number % 5)}\n" for number in range(5 * len(LINES))), encoding="utf-8")
    expected = plain(trained, text, monkeypatch, "--prefix-file", str(companion))
    assert from_file(trained, text, tmp_path / "out", "--prefix-file", str(companion)) == expected


def test_a_cluster_gives_the_bytes_of_this_machine(trained, text, tmp_path) -> None:
    expected = from_file(trained, text, tmp_path / "here")
    (tmp_path / "dask").mkdir()
    with Cluster(tmp_path / "dask", 2) as cluster:
        assert from_file(trained, text, tmp_path / "there", "--scheduler", cluster.address) == expected


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_output_is_compressed_as_its_name_says(trained, text, tmp_path, monkeypatch, suffix) -> None:
    expected = from_file(trained, text, tmp_path / "out")
    assert len(expected) > 100
    from_file(trained, text, tmp_path / f"out{suffix}")
    assert text_of(tmp_path / f"out{suffix}") == expected
    with module.open_packed(tmp_path / f"in{suffix}") as file:
        file.write(text.read_bytes())
    assert from_file(trained, tmp_path / f"in{suffix}", tmp_path / "again") == expected
    plain(trained, text, monkeypatch, name=f"pipe{suffix}")
    assert text_of(tmp_path / f"pipe{suffix}") == expected
    assert (tmp_path / f"pipe{suffix}").stat().st_size < len(expected)  # not flushed after every line


def test_columns_can_be_read_by_a_spreadsheet() -> None:
    candidate = Candidate('"Hallo"\tsagte\ner', -0.5, ["x"], [-0.5], -0.5)
    translation = Translation("x", [candidate], truncated=True, warnings=["repetition"])
    (row,) = output_lines(0, translation, columns=("score", "truncated", "repeated"))
    assert "\n" not in row
    assert next(csv.reader([row], "excel-tab")) == ['"Hallo" sagte er', "-0.5000", "1", "1"]


def test_the_help_names_the_columns_that_exist(capsys) -> None:
    run(["translate", "--help"])
    assert f"such as {','.join(COLUMNS)}." in " ".join(capsys.readouterr().out.split())


def test_an_unknown_column_is_refused(trained, text, tmp_path, capsys) -> None:
    from_file(trained, text, tmp_path / "out", "--columns", "score,length", code=2)
    assert (
        "there is no column 'length'. Choose from score, truncated, repeated, confidence."
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("arguments", [["--json"], ["--stream", "--beam", "1"]])
def test_workers_need_files_and_lines(trained, text, tmp_path, capsys, arguments) -> None:
    from_file(trained, text, tmp_path / "out", "--workers", "2", *arguments, code=2)
    assert "--workers and --scheduler need FILE and --output FILE" in capsys.readouterr().err


def record_shard_starts(monkeypatch: pytest.MonkeyPatch, fail_at: int | None = None) -> list[int]:
    """Return a list that collects the first lines of the shards translated from now on."""
    started: list[int] = []
    original = module._translate_shard

    def recording_translate(job: module.TranslationJob, shard: module.Shard) -> bytes:
        if shard.start == fail_at:
            raise KeyboardInterrupt
        started.append(shard.start)
        return original(job, shard)

    monkeypatch.setattr(module, "_translate_shard", recording_translate)
    return started


@pytest.mark.usefixtures("small_shards")
def test_the_same_command_resumes_after_an_interruption(trained, text, tmp_path, monkeypatch) -> None:
    expected = from_file(trained, text, tmp_path / "expected")
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        started = record_shard_starts(patch, fail_at=18)
        from_file(trained, text, out, code=130)
    assert started == [0, 6, 12]
    assert not out.exists()
    started = record_shard_starts(monkeypatch)
    assert from_file(trained, text, out) == expected
    assert started == [18, 24, 30, 36]


@pytest.mark.parametrize("change", ["input", "options", "run", "version", "shards"])
@pytest.mark.usefixtures("small_shards")
def test_another_input_run_option_or_version_starts_again(trained, text, tmp_path, monkeypatch, change) -> None:
    copied = tmp_path / "run"
    shutil.copytree(trained, copied)
    with monkeypatch.context() as patch:
        record_shard_starts(patch, fail_at=18)
        from_file(copied, text, tmp_path / "out", code=130)
    if change == "input":
        text.write_text(text.read_text(encoding="utf-8").replace("ihg", "hig"), encoding="utf-8")
    elif change == "run":
        other = make_translator(end_bias=0.2, letters=KNOWN, data={"max_length": 35})
        shutil.rmtree(copied)
        save_run(other, copied)
    elif change == "version":
        monkeypatch.setattr("manyheads.__version__", "0.0")
    elif change == "shards":
        monkeypatch.setattr(module, "SHARD_LINES", 9)
    options = ["--length-penalty", "0.2"] if change == "options" else []
    expected = from_file(copied, text, tmp_path / "expected", *options)
    started = record_shard_starts(monkeypatch)
    assert from_file(copied, text, tmp_path / "out", *options) == expected
    assert started[0] == 0


@pytest.mark.usefixtures("small_shards")
def test_a_full_disk_keeps_the_old_output_and_the_shards(trained, text, tmp_path, monkeypatch, capsys) -> None:
    out = tmp_path / "out"
    out.write_text("of yesterday", encoding="utf-8")
    original = os.replace

    def raise_disk_full(draft: Path, target: Path) -> None:
        if target == out:
            raise OSError(28, "No space left on device")
        original(draft, target)

    monkeypatch.setattr(os, "replace", raise_disk_full)
    from_file(trained, text, out, code=3)
    assert f"{out} cannot be written: No space left on device" in capsys.readouterr().err
    assert out.read_text(encoding="utf-8") == "of yesterday"
    assert len(list(_shards_folder(out).glob("*.shard"))) == 7
    assert sorted(path.name for path in out.parent.iterdir()) == ["out", "out.shards", "text.de"]


@pytest.mark.usefixtures("small_shards")
def test_a_second_process_leaves_the_work_of_the_first_and_is_told_at_once(trained, text, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    expected = from_file(trained, text, tmp_path / "expected")
    job, translator = job_of(trained), job_of(trained).open()

    def read_shards() -> Iterator[Shard]:
        yield Shard(0, LINES[:6], {})
        from_file(trained, text, out, code=3)  # the second process, while the first works
        from_file(trained, text, out, "--json", code=3)
        assert list(_shards_folder(out).glob("*.shard"))
        yield Shard(6, LINES[6:], {})

    translate_file(job, translator, read_shards(), out, inputs=[text])
    assert capsys.readouterr().err.count(f"{out} is being written by another process. Wait for it") == 2
    assert expected == 5 * out.read_bytes()
    assert [path.name for path in tmp_path.glob("out*")] == ["out"]


@pytest.mark.usefixtures("small_shards")
def test_a_folder_of_shards_that_is_a_link_is_refused(trained, text, tmp_path, capsys) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "00000000.shard").write_text("mine")
    _shards_folder(tmp_path / "out").symlink_to(tmp_path / "mine")
    from_file(trained, text, tmp_path / "out", code=3)
    assert "out.shards is a link" in capsys.readouterr().err
    assert (tmp_path / "mine" / "00000000.shard").read_text() == "mine"


def test_a_worker_without_the_model_is_named_with_its_path(trained, text, tmp_path, monkeypatch, capsys) -> None:
    copied = tmp_path / "run"
    shutil.copytree(trained, copied)
    original = executors.open_executor

    def without_model(*arguments: object) -> object:
        shutil.rmtree(copied)
        return original(*arguments)

    monkeypatch.setattr(executors, "open_executor", without_model)
    from_file(copied, text, tmp_path / "out", "--workers", "1", code=3)
    error = capsys.readouterr().err
    assert f"The worker on {module.platform.node()} cannot load the model: {copied} " in error
    assert not _shards_folder(tmp_path / "out").exists()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """Return `translate_shard_in_worker`, which leaves the threads of the tests as they are."""
    monkeypatch.setattr(module, "limit_threads", lambda count: None)
    return module._translate_shard_in_worker


def job_of(run: Path) -> TranslationJob:
    return TranslationJob(run, device="cpu", options=SearchOptions(beam_size=2)).for_workers()


def test_a_worker_with_another_version_is_refused(trained, worker) -> None:
    with pytest.raises(RunError, match=rf"has manyheads {re.escape(__version__)}, and this machine 0\.0\. Install"):
        worker(job_of(trained), "0.0", Shard(0, LINES, {}))


def test_another_model_is_refused_at_every_shard(trained, worker) -> None:
    job = replace(job_of(trained), digest="0")
    for start in (0, len(LINES)):
        with pytest.raises(RunError, match="has another model"):
            worker(job, __version__, Shard(start, LINES, {}))


def test_a_worker_loads_the_model_of_each_job(trained, worker, tmp_path) -> None:
    other = save_run(make_translator(end_bias=3.0, letters=KNOWN, data={"max_length": 35}), tmp_path / "other")
    first, second, third = (
        worker(job_of(run), __version__, Shard(0, LINES, {})) for run in (trained, other, trained)
    )
    assert first == third != second


@pytest.mark.usefixtures("small_shards")
def test_warnings_have_the_numbers_of_the_lines_in_the_file(trained) -> None:
    job, expected = job_of(trained), {}
    for number, translation in enumerate(job.open().translate(LINES, options=job.options), start=101):
        for warning in warnings_of(translation):
            expected.setdefault(warning, []).append(number)
    assert expected
    assert json.loads(_translate_shard(job, Shard(100, LINES, {})).partition(b"\n")[0]) == [len(LINES), expected]


@pytest.fixture
def long_text(tmp_path: Path) -> Path:
    path = tmp_path / "long.de"
    path.write_text("".join(f"{LINES[number % 8]}\n" for number in range(6_000)), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.weekly
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_loses_no_finished_shard_of_a_program(trained, long_text, tmp_path, number) -> None:
    expected = from_file(trained, long_text, tmp_path / "expected")
    out = tmp_path / "out.zst"
    command = [sys.executable, "-m", "manyheads", "translate", str(trained), str(long_text), *BEAM]
    command += ["-o", str(out), "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        wait_for(lambda: len(list(_shards_folder(out).glob("*.shard"))) >= 2)
        process.send_signal(number)
        _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(number, -number)
    assert b"Traceback" not in errors
    assert not out.exists()
    kept = {path.name: path.stat().st_mtime_ns for path in _shards_folder(out).glob("*.shard")}
    assert kept
    with subprocess.Popen(command) as process:
        wait_for(lambda: len(list(_shards_folder(out).glob("*.shard"))) > len(kept) or process.poll() is not None)
        again = {path.name: path.stat().st_mtime_ns for path in _shards_folder(out).glob("*.shard")}
        assert process.wait(LIMIT) == 0
    assert not again or kept.items() <= again.items()
    assert text_of(out) == expected
