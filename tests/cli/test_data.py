"""`data split` and `data report` on the command line: their output and their error messages."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.checks.test_text import make_splits, write_splits
from tests.cli.conftest import Call
from tests.faults import kill_command

from faults import needs_signals
from manyheads.cli.recipes import _describe
from manyheads.config.load import load_config
from manyheads.runs.examine_config import examine_config_text


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write two files to a directory whose name has a blank in it, and change to it."""
    folder = tmp_path / "my corpus"
    folder.mkdir()
    for language in ("de", "en"):
        lines = (f"{language} {chr(97 + n // 26)}{chr(97 + n % 26)} {' '.join('äöüxyz')}" for n in range(100))
        (folder / f"corpus.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "words.txt").write_text("x\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


def test_the_folder_is_named_by_the_languages_and_the_next_command_works(call: Call) -> None:
    out = call("data", "split", "corpus.de", "corpus.en", "--equal-only").out
    assert "100 pairs read\ndata/de-en: train 90, valid 5, test 5 pairs (seed 1)\n" in out
    assert out.endswith("Next: manyheads init de-en --data data/de-en --source de --target en\n")


def test_json_is_one_document_with_the_same_counts(call: Call) -> None:
    command = ["data", "split", "corpus.en", "corpus.de", "-o", "out dir", "--valid", "7", "--test", "0", "--json"]
    found = json.loads(call(*command, "--equal-only").out)
    assert (found["root"], found["source"], found["target"]) == ("out dir", "en", "de")
    assert (found["read"], found["train"], found["valid"], found["test"]) == (100, 93, 7, 0)
    names = sorted(path.name for path in Path("out dir").iterdir())
    assert names == ["train.de", "train.en", "valid.de", "valid.en"]


@needs_signals
def test_a_division_that_was_killed_between_two_files_is_made_anew(call: Call) -> None:
    command = ["data", "split", "corpus.de", "corpus.en", "-o"]
    call(*command, "whole")
    kill_command(*command, "out", at="out/train.de")
    assert sorted(path.name for path in Path("out").glob("t*")) == ["test.de", "test.en"]
    call(*command, "out")
    whole, out = ({path.name: path.read_bytes() for path in Path(name).iterdir()} for name in ("whole", "out"))
    assert out == whole


def test_a_division_that_fails_at_a_file_leaves_none(call: Call) -> None:
    Path("out", "train.de", "taken").mkdir(parents=True)
    assert "Is a directory" in call("data", "split", "corpus.de", "corpus.en", "-o", "out", code=3).err
    assert [path.name for path in Path("out").iterdir()] == ["train.de"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["corpus.de"], 2, "corpus.de alone is no parallel text"),
        (["corpus.de", "corpus.de"], 2, "corpus.de is given twice"),
        (["a", "b", "c"], 2, "3 files are given"),
        (["corpus.de", "corpus.ko"], 3, "There is no file corpus.ko. Near names there: corpus."),
        (["nothing.de", "nothing.en"], 3, "There is no file nothing.de. The folder . holds corpus.de, corpus.en"),
        (["corpus.de", "words.txt"], 2, "The languages cannot be told from corpus.de and words.txt"),
        (["corpus.de", "corpus.en", "--source", "en"], 2, "Both texts have the language en"),
        (["corpus.de", "corpus.en", "--source", "Deutsch!"], 2, '"Deutsch!" is no language'),
        (
            ["corpus.de", "words.txt", "--source", "de", "--target", "en"],
            3,
            "corpus.de has 100 lines and words.txt",
        ),
        (["corpus.de", "corpus.en", "--document-file", "words.txt", "--blank-lines"], 2, "Give one of them"),
        (["corpus.de", "corpus.en", "--document-file", "words.txt"], 3, "after line 1 there are more pairs"),
        (["corpus.de", "corpus.en", "--document-file", "nowhere"], 3, "nowhere cannot be read"),
        (["corpus.de", "corpus.en", "-o", "words.txt"], 2, "is a file"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    arguments: list[str], code: int, message: str, call: Call
) -> None:
    error = call("data", "split", *arguments, code=code).err
    assert error.startswith("error: ")
    assert message in " ".join(error.split())
    assert sorted(path.name for path in Path().iterdir()) == ["corpus.de", "corpus.en", "words.txt"]


def test_the_report_has_counts_facts_and_findings(tmp_path: Path, call: Call) -> None:
    """They are those of `examine_config_text`, with which the doctor begins."""
    splits = make_splits()
    splits["train"] = [(target, source) for source, target in splits["train"]]
    (tmp_path / "text").mkdir()
    config = write_splits(tmp_path / "text", splits)
    Path("my.toml").write_text("\n".join(_describe(config)), encoding="utf-8")
    assert "error: languages-swapped" in call("data", "report", "my.toml").out
    out = call("data", "report", "my.toml", "--json").out
    found, expected = json.loads(out), examine_config_text(load_config(Path("my.toml")), "x")
    assert found["text"] == json.loads(json.dumps(expected.document["text"]))
    assert found["facts"] == expected.facts
    assert [entry["name"] for entry in found["findings"]] == list(expected.report.names)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_which_a_division_would_read_twice_is_refused(call: Call) -> None:
    os.mkfifo("pipe.de")
    err = call("data", "split", "pipe.de", "corpus.en", "--source", "de", "--target", "en", code=3).err
    assert err == "error: pipe.de can be read only once, and is read twice. Save its text in a file.\n"
