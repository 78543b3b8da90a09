from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
WORK = [sys.executable, "-c", "sum(range(5_000_000))"]  # some time of a processor
COPY = "import shutil, sys; shutil.copyfileobj(sys.stdin, sys.stdout)"


@pytest.fixture
def speedrun(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("speedrun")


def write_entry(speedrun: ModuleType, folder: Path, train: str, translate: str) -> Path:
    python = ["{python}", "-c"]
    return speedrun.write_entry(folder, train=[*python, train, "{data}", "{run}"], translate=[*python, translate])


@pytest.mark.parametrize(
    ("train", "translate", "broken"),
    [
        ("import os, sys; assert sorted(os.listdir(sys.argv[1])) == NAMES; os.mkdir(sys.argv[2])", COPY, []),
        ("", "print('one line')", ["1 lines were printed for 20"]),
        ("import subprocess as s, sys; s.run([sys.executable, '-c', LONG])", COPY, ["training took"]),
        pytest.param(  # a process that goes on when the command has ended
            "import subprocess as s, sys; s.Popen([sys.executable, '-c', LONG])",
            COPY,
            ["training took"],
            marks=pytest.mark.skipif(sys.platform != "linux", reason="counted on Linux alone"),
        ),
        ("", f"LONG; {COPY}", ["translating took"]),
    ],
)
def test_a_record_names_the_rules_that_an_entry_breaks(
    speedrun: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    train: str,
    translate: str,
    broken: list[str],
) -> None:
    root, entry, folder = tmp_path / "root", tmp_path / "entry", tmp_path / "run"
    for made in (root, folder):
        made.mkdir()
    speedrun.write_pairs(root, valid="val", test=speedrun.TEST)
    names = ["train.de", "train.en", "val.de", "val.en"]
    monkeypatch.setattr(speedrun, "MOST_REFERENCES", 5)
    long = "sum(range(100_000_000))"
    train = train.replace("NAMES", repr(names)).replace("LONG", repr(long))
    write_entry(speedrun, entry, train, translate.replace("LONG", long))
    record = speedrun.verify(entry, root, folder, WORK)
    assert len(record["broken rules"]) == len(broken)
    assert all(map(str.startswith, record["broken rules"], broken))
    assert record["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")


def test_the_score_is_that_of_the_translations_and_equal_outputs_are_counted(
    speedrun: ModuleType, tmp_path: Path
) -> None:
    entry, folder = tmp_path / "entry", tmp_path / "run"
    folder.mkdir()
    speedrun.write_pairs(tmp_path, valid="val", test=speedrun.TEST)
    answers = (tmp_path / f"{speedrun.TEST}.de").read_text(encoding="utf-8")
    record = speedrun.verify(
        write_entry(speedrun, entry, "", f"print({answers!r}, end='')"), tmp_path, folder, WORK
    )
    assert (record["BLEU"], record["outputs equal to their reference"]) == (100.0, 20)


def test_other_text_and_a_command_that_fails_are_errors(speedrun: ModuleType, tmp_path: Path) -> None:
    speedrun.write_pairs(tmp_path, valid="val", test=speedrun.TEST)
    with pytest.raises(SystemExit, match=r"train\.en is not the official file"):
        speedrun.check_text(tmp_path)
    with pytest.raises(SystemExit, match="exit code 3"):
        speedrun.processor_seconds([sys.executable, "-c", "import sys; sys.exit(3)"], tmp_path)
