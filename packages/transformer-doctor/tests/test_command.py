"""The command `transformer-doctor`: the museum, explanations, mistakes; models: test_loading.py."""

from __future__ import annotations

import json

import pytest

from transformer_doctor.catalogue import CATALOGUE
from transformer_doctor.command import transformer_doctor
from transformer_doctor.museum import EXHIBITS


def run(words: str) -> int:
    """Run the command; return its exit code."""
    with pytest.raises(SystemExit) as end:
        transformer_doctor(words.split())
    return int(str(end.value.code))


def test_the_museum_lists_its_exhibits_and_runs_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("museum") == 0
    assert len(capsys.readouterr().out.splitlines()) == len(EXHIBITS)
    assert run("museum --json") == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == [entry.name for entry in EXHIBITS]
    assert run("museum wrong-tokenizer --lang ko") == 0
    assert EXHIBITS[1].text("ko")["wrong"] in capsys.readouterr().out
    assert run("museum 2 --json") == 0
    assert json.loads(capsys.readouterr().out)["before"]["doctor"]["findings"][0]["name"] == "wrong-tokenizer"


def test_findings_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--explain mask-fill") == 0
    assert CATALOGUE["mask-fill"].texts["en"].cure in capsys.readouterr().out
    assert run("--explain list") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*CATALOGUE]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "Name a model"),
        ("no/such/folder", "Name a model"),
        ("museum 99", "there is no exhibit 99"),
        ("--explain mask-fil", "did you mean mask-fill"),
        ("referee", "Name a model"),
        (f"model.py:make --test {__file__}", "--train and --test are for a submission"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_a_wrong_number_of_ids_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("model.py:make --vocab-size 3,x") == 2
    assert "'3,x' is neither a number of ids nor two" in capsys.readouterr().err
