"""`export` and `import`: where they write."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Call, Record, Recorded


@pytest.fixture
def calls(record: Record) -> Recorded:
    return record("manyheads.runs.export.export", "manyheads.runs.import_model.import_model")


@pytest.mark.parametrize("output", [["-o", "there"], ["there"]])
def test_export_writes_to_the_output(output: list[str], calls: Recorded, call: Call) -> None:
    call("export", "mine", "--to", "huggingface", *output, "-q", code=1)
    ((positional, _),) = calls
    assert positional == (Path("mine"), Path("there"), "huggingface")


@pytest.mark.parametrize("output", [[], ["here", "-o", "there"]])
def test_export_needs_one_output(output: list[str], call: Call) -> None:
    err = call("export", "mine", *output, "--to", "huggingface", code=2).err
    assert "Say once where to write the export" in err


@pytest.mark.parametrize(
    ("model", "options", "output"),
    [
        ("Helsinki-NLP/opus-mt-de-en", [], "runs/opus-mt-de-en"),
        ("models/gpt2/", [], "runs/gpt2"),
        ("somebody/de-en-1.5", [], "runs/de-en-1.5"),
        ("downloads/de_en.argosmodel", [], "runs/de_en"),
        ("models/gpt2", ["-o", "mine"], "mine"),
    ],
)
def test_import_names_the_run_after_the_model(
    model: str, options: list[str], output: str, calls: Recorded, call: Call
) -> None:
    call("import", model, *options, code=1)
    ((positional, _),) = calls
    assert positional == (model, Path(output))
