"""`data clean` on the command line: files, report, mistakes, and a cleaning that was killed."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Call
from tests.faults import kill_command

from dirty_pairs import pairs_with_defects
from faults import needs_signals
from manyheads.cli.main import run
from manyheads.config.load import load_config
from manyheads.data.locate import locate

NAMES = ["removed.tsv.gz", "report.html", "report.json", "train.de.gz", "train.en.gz"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a configuration and its text, and change to their directory."""
    pairs, _ = pairs_with_defects(800)
    for side, language in enumerate(("de", "en")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (tmp_path / f"train.{language}").write_text(lines, encoding="utf-8", newline="\n")
    (tmp_path / "my.toml").write_text('[data]\nsource = "de"\ntarget = "en"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(out: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(out).iterdir())}


def test_json_is_the_written_report(folder: Path, call: Call) -> None:
    report = json.loads(call("data", "clean", "my.toml", "-o", "out", "--json").out)
    assert sorted(path.name for path in Path("out").iterdir()) == NAMES
    assert report == json.loads(Path("out/report.json").read_text(encoding="utf-8"))
    assert report["read"] == 800
    assert 600 < report["kept"] < 740
    assert report["repaired"] == {"mojibake": 16}
    assert report["repairs"]["mojibake"][0]["before"][0].startswith("SchÃ¶ne")
    assert report["repairs"]["mojibake"][0]["after"][0].startswith("Schöne")


def test_a_second_run_changes_nothing_and_other_settings_are_refused(folder: Path, call: Call) -> None:
    first, before = call("data", "clean", "my.toml", "-o", "out").out, files("out")
    assert (call("data", "clean", "my.toml", "-o", "out").out, files("out")) == (first, before)
    err = call("data", "clean", "my.toml", "-o", "out", "--set", "clean.max_ratio=3", code=3).err
    assert "nothing is overwritten" in err


@pytest.mark.parametrize(
    ("change", "arguments", "code", "message"),
    [
        ("shorter", [], 3, "The line counts differ"),
        ("empty", [], 3, "no lines. Name files that hold text."),
        ("", ["--set", "data.source=germanlanguage"], 2, "data.source"),
        ("", ["--set", "clean.models=[1, 2]"], 2, "clean.models = [1, 2] is not a list of 2, each text"),
        ("blank", [], 3, "No pair is left: 800 read; 800 empty."),
    ],
)
def test_a_mistake_is_one_clear_line_and_leaves_no_file(
    folder: Path, call: Call, change: str, arguments: list[str], code: int, message: str
) -> None:
    path = folder / "train.en"
    text = path.read_text(encoding="utf-8")
    if change == "shorter":
        path.write_text(text[: text.rindex("\n", 0, -1) + 1], encoding="utf-8", newline="\n")
    elif change == "empty":
        for language in ("de", "en"):
            (folder / f"train.{language}").write_text("", encoding="utf-8")
    elif change == "blank":
        path.write_text("\n" * 800, encoding="utf-8", newline="\n")
    error = call("data", "clean", "my.toml", "-o", "out", *arguments, code=code).err
    assert message in error
    assert "Traceback" not in error
    assert not Path("out").exists() or not [path for path in Path("out").iterdir() if path.name != ".clean"]


@pytest.mark.slow
def test_a_cleaning_that_was_killed_resumes_to_the_same_files(folder: Path) -> None:
    assert run(["data", "clean", "my.toml", "-o", "whole"]) == 0
    command = [sys.executable, "-m", "manyheads", "-q", "data", "clean", "my.toml", "-o", "out"]
    rng = random.Random(5)
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        limit = time.monotonic() + rng.uniform(1, 4)
        while process.poll() is None and time.monotonic() < limit:
            time.sleep(0.02)
        process.kill()
        process.wait()
    assert run(["data", "clean", "my.toml", "-o", "out"]) == 0
    assert files("out") == files("whole")


@needs_signals
def test_a_killed_cleaning_leaves_no_copy_of_the_text_once_it_is_repeated(folder: Path, call: Call) -> None:
    command = ["data", "clean", "my.toml", "-o", "out"]
    kill_command(*command, at="out/train.en.gz")
    assert len(list(Path("out").glob(".draft-*/train.en.gz"))) == 1
    call(*command)
    assert sorted(path.name for path in Path("out").iterdir()) == NAMES


def test_the_next_command_trains_on_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = ["clean.loss=0", "data.limit=300", "training.steps=1", "model.d_model=8"]
    given = [word for setting in settings for word in ("--set", setting)]
    printed = call("data", "clean", "demo-de-en", "-o", "my out [1]", *given).out
    assert str(tmp_path) not in printed
    program, *words = shlex.split(printed.rpartition("Next: ")[2])
    assert program == "manyheads"
    kept = re.findall(r"([\d,]+) kept", printed)[0]
    assert f"{kept} pairs read" in call(*words).err


def test_the_line_for_the_configuration_names_the_files_from_its_root(folder: Path, call: Call) -> None:
    (folder / "text").mkdir()
    for language in ("de", "en"):
        (folder / f"train.{language}").rename(folder / "text" / f"train.{language}")
    written = '[data]\nroot = "text"\nsource = "de"\ntarget = "en"\n'
    (folder / "my.toml").write_text(written, encoding="utf-8")
    for out, files in (("text/out", "out/train.{}.gz"), ("clean", "../clean/train.{}.gz")):
        printed = call("data", "clean", "my.toml", "-o", out).out
        line = printed.rpartition("or write into [data] of my.toml: ")[2]
        assert line == 'train = ["{}", "{}"]\n'.format(*(files.format(language) for language in ("de", "en")))
        (folder / "new.toml").write_text(written + line, encoding="utf-8")
        config = load_config(folder / "new.toml")
        assert [path.resolve() for path in locate(config.data, "train")] == [
            (folder / out / f"train.{language}.gz").resolve() for language in ("de", "en")
        ]
