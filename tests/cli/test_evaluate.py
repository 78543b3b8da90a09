"""`evaluate`: the options reach the library."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Call, Record, Recorded
from tests.runs.language import make_language_config

from manyheads.config.load import config_to_json


@pytest.fixture
def calls(record: Record) -> Recorded:
    return record("manyheads.runs.evaluate.evaluate", "manyheads.runs.compare.compare")


@pytest.mark.parametrize("against", [None, "other"])
def test_options_reach_the_library(against: str | None, calls: Recorded, call: Call) -> None:
    options = ["--source-file", "a.de", "--reference-file", "a.en", "--beam", "3", "--device", "cpu", "-q"]
    options += ["--from", "de", "--to", "en"]
    options += ["--set", "search.length_penalty=0.5", *(["--against", against] if against else [])]
    call("evaluate", "mine", *options, code=1)
    ((runs, arguments),) = calls
    assert arguments.pop("listener") is not None
    assert runs == (Path("mine"),)
    assert arguments == {
        **({"other": Path(against)} if against else {}),
        "split": "test",
        "source": Path("a.de"),
        "reference": Path("a.en"),
        "languages": ("de", "en"),
        "overrides": ("search.length_penalty=0.5", "search.beam_size=3"),
        "device": "cpu",
    }


def test_without_a_beam_the_run_decides(calls: Recorded, call: Call) -> None:
    call("evaluate", "mine", "-q", code=1)
    ((_, arguments),) = calls
    assert (arguments["overrides"], arguments["device"]) == ((), "auto")


def test_a_reference_needs_its_source(call: Call) -> None:
    err = call("evaluate", "mine", "--reference-file", "a.en", code=2).err
    assert "--source-file and --reference-file belong together." in err


def test_an_output_file_is_refused_for_a_language_model_before_it_is_scored(
    tmp_path: Path, calls: Recorded, call: Call
) -> None:
    (tmp_path / "config.json").write_text(config_to_json(make_language_config(tmp_path)), encoding="utf-8")
    err = call("evaluate", tmp_path, "-o", tmp_path / "out.txt", code=2).err
    assert "the evaluation of a language model writes no text" in err
    assert not calls
