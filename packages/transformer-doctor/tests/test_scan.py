"""The command `transformer-doctor scan`: models of a file and of transformers, a baseline, formats."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from transformer_doctor.cases import Row
from transformer_doctor.catalogue import model_finding
from transformer_doctor.errors import UsageError
from transformer_doctor.scan import read_baseline, scan, scan_report

MODELS = """
from torch import nn


class Writer(nn.Sequential):
    pass


def writer():
    layer = nn.TransformerEncoderLayer(16, 2, 16, batch_first=True)
    model = Writer(nn.Embedding(23, 16), layer, nn.Linear(16, 23))
    return {"model": model, "kind": "decoder", "longest": 16, "quick": True}


def broken():
    raise ValueError("no such device")


def helper(size):
    return writer()
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file of models in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("models.py").write_text(MODELS, encoding="utf-8")
    return Path("models.py")


def run(words: str) -> int:
    """Run the command; return its exit code."""
    with pytest.raises(SystemExit) as end:
        scan(words.split())
    return int(str(end.value.code))


def test_what_the_functions_of_a_file_make_is_examined_and_only_new_findings_fail(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("models.py --rows rows.jsonl --format json -o found.json") == 1
    document = json.loads(Path("found.json").read_text("utf-8"))
    names = [finding["name"] for finding in document["findings"]]
    assert "sees-the-future" in names
    assert all(finding["evidence"].startswith("model writer: ") for finding in document["findings"])
    assert document["findings"][0]["place"].startswith("models.py:")
    assert [entry["check"] for entry in document["skipped"]] == ["broken"]
    assert "no such device" in document["skipped"][0]["reason"]
    assert "1 check, 1 not made" in capsys.readouterr().err

    models.write_text(MODELS.replace("raise", "return "), encoding="utf-8")  # rows are not examined again
    rows = "models.py --class writer --rows rows.jsonl --baseline known.toml"
    assert run(f"{rows} --write-baseline --format junit") == 1
    suite = ElementTree.fromstring(capsys.readouterr().out)
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert [entry["name"] for entry in read_baseline(Path("known.toml"))] == names
    assert run(rows) == 0
    assert capsys.readouterr().out.endswith("1 check passed: nothing has to be corrected\n")


def test_a_class_of_transformers_is_examined_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    assert (
        run("transformers --class BertForMaskedLM --class Qwen2AudioForCond* --seconds 900 --format markdown") == 0
    )
    text = capsys.readouterr().out
    assert "1 check passed, 1 not made" in text
    assert "more than text" in text


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("no_such_file.py", 2, "no_such_file.py is no file"),
        ("models.py --class Nothing", 2, "none of 2 classes is named Nothing"),
        ("models.py --write-baseline", 2, "--baseline names"),
        ("models.py --baseline models.py", 2, "is not TOML"),
    ],
)
@pytest.mark.usefixtures("models")
def test_a_mistake_is_one_line(words: str, code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == code
    assert message in capsys.readouterr().err


def test_an_entry_of_a_baseline_needs_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text('[[finding]]\nmodel = "GPT"\nname = "mask-fill"\n', encoding="utf-8")
    with pytest.raises(UsageError, match="finding 1 has no why"):
        read_baseline(path)


def row(case: str, *names: str) -> Row:
    return {"case": case, "findings": [asdict(model_finding(name, "seen")) for name in names]}


def test_a_report_names_the_class_of_each_finding_and_leaves_out_notes() -> None:
    models = {"ForCausalLM a": "AForCausalLM", "ForCausalLM b": "BForCausalLM", "ForMaskedLM a": "AForMaskedLM"}
    rows = [row("ForCausalLM b", "rows-mixed", "pad-row-overwritten"), row("ForCausalLM a", "rows-mixed"),
            {"case": "ForMaskedLM a", "failure": "not done after 1 s"}]  # fmt: skip
    known = [{"model": "ForCausalLM *", "name": "no-positions", "why": "w"},
             {"model": "AForCausalLM", "name": "rows-mixed", "why": "w"},
             {"model": "ForMaskedLM *", "name": "rows-mixed", "why": "w"}]  # fmt: skip
    report, gone = scan_report(rows, models, known)
    assert [(finding.name, finding.evidence) for finding in report.findings] == [
        ("rows-mixed", "model BForCausalLM: seen")
    ]
    assert report.skipped == [("AForMaskedLM", "not done after 1 s")]
    assert gone == known[:1], "a class that was not examined says nothing about its entries"
    assert report.findings_in("ko")[0].evidence.startswith("BForCausalLM 모델: ")
