from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest

from harness import in_turn, main, option, tables

OPTIONS = {
    "run": option(Path, "run directory", tiny=lambda folder: folder / "made", required=True),
    "--rounds": option(3, "rounds", tiny=1),
}


def test_sides_are_called_in_turn_and_rounds_of_warm_up_do_not_count() -> None:
    called: list[str] = []
    ticks = itertools.count()
    sides = {name: lambda name=name: called.append(name) for name in ("ours", "theirs")}
    seconds = in_turn(sides, 2, clock=lambda: next(ticks))
    assert called == ["ours", "theirs"] * 3
    assert seconds == {"ours": [1, 1], "theirs": [1, 1]}


def test_the_document_is_alone_on_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["script.py", "--tiny", "--json"])

    def measure(arguments):
        print("progress")
        assert arguments.folder.is_dir()
        return {"rows": [arguments.run.name, arguments.rounds], "versions": {"browser": "1"}}

    main(measure, "A script.", OPTIONS, unit="ms")
    document = json.loads(capsys.readouterr().out)
    assert (document["unit"], document["rows"], document["tiny"]) == ("ms", ["made", 1], True)
    assert {"python", "torch", "browser"} <= set(document["versions"])


def test_a_required_option_may_only_be_missing_with_tiny(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["script.py", "--rounds", "2"])
    with pytest.raises(SystemExit):
        main(lambda arguments: {}, "A script.", OPTIONS, unit="ms")
    assert "the following arguments are required: run" in capsys.readouterr().err


def test_a_document_becomes_tables_of_markdown() -> None:
    rows = {"ours": {"median": 1234.5, "met": True}, "torch": {"median": 0.12345, "BLEU": 2.0}}
    assert "\n".join(tables({"rows": rows, "lines": 7})).strip().splitlines() == [
        "| rows | median | met | BLEU |",
        "| --- | --- | --- | --- |",
        "| ours | 1,234 | yes |  |",
        "| torch | 0.1235 |  | 2 |",
        "lines: 7",
    ]
