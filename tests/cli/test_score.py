"""`score` prints the score of each pair of two files, and its confidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.inference.translation.test_translator import CONFIDENCE, make_translator, save_run
from tests.tolerances import approx

from manyheads.cli.main import run


def write(folder: Path, name: str, *lines: str) -> str:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_each_pair_has_its_score_and_its_confidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_run(make_translator(), tmp_path / "run")
    source, target = write(tmp_path, "a", "abc", "abc", "def"), write(tmp_path, "b", "cba", "", "d")
    assert run(["score", str(path), source, target]) == 0
    plain, warning = capsys.readouterr()
    assert "a side is empty, or longer than the model: line 2" in warning
    assert plain.split("\n")[1] == ""
    (path / "confidence.json").write_text(json.dumps(CONFIDENCE.to_json()))
    assert run(["score", str(path), source, target]) == 0
    with_confidence = capsys.readouterr().out.split("\n")
    assert [line.partition("\t")[0] for line in with_confidence] == plain.split("\n")
    assert run(["score", str(path), source, target, "--json"]) == 0
    documents = json.loads(capsys.readouterr().out)
    assert [document["translation"] for document in documents] == ["cba", "", "d"]
    first = documents[0]["hypotheses"][0]
    assert sum(first["token_scores"]) / len(first["token_scores"]) == approx(first["score"])
    assert with_confidence[0] == f"{first['score']:.4f}\t{documents[0]['confidence']:.4f}"


def test_files_of_other_lengths_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_run(make_translator(), tmp_path / "run")
    one, two = write(tmp_path, "a", "abc"), write(tmp_path, "b", "abc", "d")
    assert run(["score", str(path), one, two]) == 3
    assert "has more lines than the input" in capsys.readouterr().err
    assert run(["score", str(path), two, one]) == 3
    assert "has fewer lines than the input" in capsys.readouterr().err
