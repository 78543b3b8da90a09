"""`data convert` on the command line: its output, the next command that it prints, and its error messages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Call
from tests.faults import kill_command

from bitext.lines import read_lines
from faults import needs_signals
from formats.test_moses import README, TEXT, make_archive


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("de-en.txt.zip").write_bytes(make_archive({**TEXT, "README": README}).read())
    Path("table.csv").write_text("German,English\na,b\n", encoding="utf-8")


def test_an_archive_is_converted_without_options(call: Call) -> None:
    out = call("data", "convert", "de-en.txt.zip", "-o", "out").out
    assert out.startswith("de-en.txt.zip: Moses zip, 2 pairs\n  licence: CC-BY 2.0 FR; origin: http://opus")
    assert out.endswith("Next: manyheads data split out/de-en.de.gz out/de-en.en.gz\n")


@needs_signals
def test_a_conversion_that_was_killed_between_two_files_is_made_anew(call: Call) -> None:
    command = ["data", "convert", "de-en.txt.zip", "-o", "out"]
    kill_command(*command, at="out/de-en.en.gz")
    assert sorted(path.name for path in Path("out").glob("d*")) == ["de-en.de.gz", "de-en.sources.json"]
    call(*command)
    names = sorted(path.name for path in Path("out").iterdir())
    assert names == ["de-en.de.gz", "de-en.en.gz", "de-en.sources.json"]


def test_json_is_one_document(call: Call) -> None:
    command = ["data", "convert", "table.csv", "-o", "out", "--columns", "German,English", "--source", "de"]
    found = json.loads(call(*command, "--target", "en", "--name", "x", "--licence", "CC0", "--json").out)
    assert (found["files"], found["pairs"]) == (["out/x.de.gz", "out/x.en.gz"], 1)
    assert found["sources"][0]["licence"] == "CC0"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["table.csv"], 2, "Missing option '-o'"),
        (["-o", "out"], 2, "Missing argument 'FILE...'"),
        (["table.csv", "-o", "out", "--name", "../x"], 2, '"../x" cannot name files'),
        (["table.csv", "-o", "out"], 2, "Choose two with --columns among: German, English"),
        (["table.csv", "-o", "de-en.txt.zip"], 2, "is a file"),
        (["table.csv", "-o", "out", "--columns", "German"], 2, "'German' does not name two columns"),
        (["x.docx", "-o", "out"], 3, "There is no file x.docx"),
        (["de-en.txt.zip", "-o", "out", "--source", "x!", "--target", "en"], 3, "holds no text in x!"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    arguments: list[str], code: int, message: str, call: Call
) -> None:
    error = call("data", "convert", *arguments, code=code).err
    assert error.startswith("error: ")
    assert message in " ".join(error.split())
    assert sorted(path.name for path in Path().iterdir()) == ["de-en.txt.zip", "table.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="no /dev/stdin")
def test_pipes_and_standard_input_are_converted() -> None:
    Path("a.en").write_text("x\ny\n")
    convert = f'"{sys.executable}" -m manyheads data convert'
    options = "--name t --source de --target en"
    for inputs in ("- a.en", "/dev/stdin a.en"):
        shell = f"printf 'a\\nb\\n' | {convert} {inputs} -o out {options}"
        subprocess.run(["sh", "-c", shell], check=True, capture_output=True)
        assert list(read_lines(Path("out/t.de.gz"))) == ["a", "b"]
        shutil.rmtree("out")
    for inputs, problem in (("- -", "can be read only once, and is read twice"), ("- a.en", "--name NAME")):
        shell = f"printf 'a\\n' | {convert} {inputs} -o out {options if '--name' not in problem else ''}"
        done = subprocess.run(["sh", "-c", shell], check=False, capture_output=True, text=True)
        assert done.returncode in (2, 3)
        assert problem in done.stderr
