"""What the page shows of a run before anyone inspects it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.runs.parts import make_config

from manyheads.checkpoint import RunDirectory
from manyheads.config.load import config_to_json
from manyheads.errors import RunError
from manyheads.inference.about import curves_of, describe, examples_of


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(config_to_json(make_config(tmp_path)), encoding="utf-8")
    return tmp_path


def test_a_run_without_log_and_card_has_no_examples(run: Path) -> None:
    assert examples_of(run) == []
    assert RunDirectory(run).card() == ""
    with pytest.raises(RunError, match=r"has no metrics\.jsonl yet"):
        curves_of(run, "mine")


def test_examples_are_those_of_the_last_validation_first_those_that_were_translated_as_the_reference(
    run: Path,
) -> None:
    rows = [
        (5, ["old", "x", "x"]),
        (10, ["a long one", "wrong", "right"]),
        (10, ["short", "wrong", "right"]),
        (10, ["as long as it gets", "right", "right"]),
    ]
    log = [
        {"kind": "validation", "step": step, "loss": 1.0, "perplexity": 2.7, "sample": row} for step, row in rows
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in log), encoding="utf-8")
    assert examples_of(run) == ["as long as it gets", "short", "a long one"]


def test_the_description_has_the_beam_and_the_languages_of_a_translator(run: Path) -> None:
    config = make_config(run)
    (run / "README.md").write_text("# a card\n", encoding="utf-8")
    assert RunDirectory(run).card() == "# a card\n"
    found = describe(config, "mine", examples=["a"])
    assert found["beam"] == config.search.beam_size
    assert (found["name"], found["source"], found["target"], found["examples"]) == ("mine", "de", "en", ["a"])
