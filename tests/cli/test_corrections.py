"""`corrections review` on the command line: its files, its document and its mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Call

from manyheads.data.suggestions import Suggestion, SuggestionFile

ROWS = [
    ("Der Hund schläft.", "The dog sleep.", "The dog sleeps."),
    ("Die Katze schläft auf dem Sofa.", "The cat sleeps on the sofa.", "aaaaaaaaaaaaa"),
    ("Der Mann liest heute ein Buch.", "The man is reading a book.", "My aunt cooks soup on Sundays."),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with a file of suggestions."""
    monkeypatch.chdir(tmp_path)
    for row in ROWS:
        SuggestionFile(Path("s.jsonl")).append(Suggestion("2026-01-01", ("de", "en"), *row))
    return tmp_path


def test_the_files_and_the_document_are_written(folder: Path, call: Call) -> None:
    outputs = ["-o", "accepted.tsv", "--rejected", "rejected.tsv", "--html", "doubtful.html"]
    document = json.loads(call("corrections", "review", "s.jsonl", *outputs, "--json").out)
    assert [document[name] for name in ("accepted", "doubtful", "rejected")] == [1, 1, 1]
    assert Path("accepted.tsv").read_text("utf-8") == "Der Hund schläft.\tThe dog sleeps.\n"
    assert len(Path("rejected.tsv").read_text("utf-8").split("\n")) == 4
    assert "My aunt" in Path("doubtful.html").read_text("utf-8")

    text = call("corrections", "review", "s.jsonl", "-o", "accepted.tsv").out
    assert "de-en: 3 suggestions, 3 different\n1 accepted, 1 doubtful, 1 rejected" in text
    assert "Next: manyheads tune RUN accepted.tsv" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["s.jsonl"], 2, "--output"),
        (["nothing", "-o", "a"], 3, "nothing cannot be read"),
        (["s.jsonl", "-o", "a", "--run", "nothing"], 3, "is not a directory"),
    ],
)
def test_mistakes_are_refused_before_a_file_is_written(
    folder: Path, call: Call, arguments: list[str], code: int, message: str
) -> None:
    assert message in call("corrections", "review", *arguments, code=code).err
    assert [path.name for path in folder.iterdir()] == ["s.jsonl"]
