"""The command `transformer-doctor scan`: classes of a package, a baseline, formats."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from transformer_doctor.cases import Row
from transformer_doctor.catalogue import model_finding
from transformer_doctor.errors import UsageError
from transformer_doctor.scan import examine_small, read_baseline, scan, scan_report

MODELS = """
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class GPTConfig:
    block_size: int = 1024
    vocab_size: int = 50304
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    dropout: float = 0.0


class Block(nn.Module):
    def __init__(self, d_model: int, n_heads: int, causal=True):
        super().__init__()
        self.heads, self.causal, self.norm = n_heads, causal, nn.LayerNorm(d_model)
        self.projections, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.projections(self.norm(x)).chunk(3, -1)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return x + self.out(y.transpose(1, 2).flatten(2))


class GPT(nn.Module):
    causal = True

    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.n_embd)
        self.positions = nn.Embedding(config.block_size, config.n_embd)
        self.blocks = nn.ModuleList(Block(config.n_embd, config.n_head, self.causal) for _ in range(config.n_layer))
        self.head = nn.Linear(config.n_embd, config.vocab_size)

    def forward(self, ids):
        if ids.size(1) > self.positions.num_embeddings:
            raise ValueError(f"texts have at most {self.positions.num_embeddings} tokens")
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class MaskedEncoder(GPT):
    causal = False

    def __init__(self, num_tokens: int, d_model: int, nheads: int, nlayers: int = 6, dropout: float = 0.1):
        super().__init__(GPTConfig(64, num_tokens, nlayers, nheads, d_model))


class Named(GPT):
    def __init__(self, flavour):
        super().__init__(GPTConfig())


class Embedder(nn.Module):
    def __init__(self, vocab_size: int = 30000, dim: int = 512):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, dim)

    def forward(self, ids):
        return self.tokens(ids)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a package of models in the working directory; processes keep what they have imported."""
    name = f"theirs_{zlib.crc32(str(tmp_path).encode())}"
    folder = tmp_path / name
    folder.mkdir()
    for file, text in {"__init__": "", "models": MODELS, "broken": "raise ValueError('no such device')"}.items():
        (folder / f"{file}.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def run(words: str) -> int:
    """Run the command; return its exit code."""
    with pytest.raises(SystemExit) as end:
        scan(words.split())
    return int(str(end.value.code))


def test_the_classes_of_a_package_are_built_from_their_configuration_or_arguments_and_examined(
    package: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"{package} --format json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["asked"] == [f"{package}.models:GPT", f"{package}.models:MaskedEncoder"]
    assert {entry["check"]: entry["reason"] for entry in document["skipped"]} == {
        f"{package}.broken": "ValueError: no such device",
        f"{package}.models:Named": "needs flavour",
    }


def test_new_findings_fail_and_known_ones_do_not(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    models = Path(package, "models.py")
    models.write_text(models.read_text("utf-8").replace("causal = True\n", "causal = False\n"), encoding="utf-8")
    assert run(f"{package} --class GPT --format sarif -o found.sarif --rows rows.jsonl") == 1
    (result,) = json.loads(Path("found.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert result["ruleId"] == "sees-the-future"
    assert f"class {package}.models:GPT" in result["message"]["text"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert place == f"{package}/models.py"
    assert "1 new, 0 known" in capsys.readouterr().err

    models.write_text("raise SystemExit", encoding="utf-8")  # what the file of rows holds is not examined again
    rows = "--class GPT --rows rows.jsonl --baseline known.toml"
    models.write_text(MODELS, encoding="utf-8")  # what the file of rows holds is not examined again
    assert run(f"{package} {rows} --write-baseline --format junit") == 1
    suite = ElementTree.fromstring(capsys.readouterr().out)
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert read_baseline(Path("known.toml"))[0]["name"] == "sees-the-future"
    assert run(f"{package} {rows}") == 0
    assert "0 new, 1 known" in capsys.readouterr().out

    assert run(f"{package} --class GPT --baseline known.toml") == 0
    assert f"known.toml: no longer found: sees-the-future in {package}.models:GPT" in capsys.readouterr().err


def test_a_class_of_transformers_is_examined_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    assert run("transformers --class OPTForCausalLM --class BertForMaskedLM --seconds 900 --format markdown") == 0
    assert "2 examined, 0 left out; findings: 0 new, 0 known" in capsys.readouterr().out
    (row,) = examine_small("ForConditionalGeneration qwen2_audio")
    assert "more than text" in row["left out"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("no_such_package", 4, "no_such_package, which is not installed"),
        ("PACKAGE --class Nothing", 2, "none of 5 classes is named Nothing"),
        ("PACKAGE --write-baseline", 2, "--baseline names"),
        ("PACKAGE --baseline PACKAGE/models.py", 2, "is not TOML"),
    ],
)
def test_a_mistake_is_one_line(
    words: str, code: int, message: str, package: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.replace("PACKAGE", package)) == code
    assert message in capsys.readouterr().err


def test_an_entry_of_a_baseline_needs_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text('[[finding]]\nmodel = "GPT"\nname = "mask-fill"\n', encoding="utf-8")
    with pytest.raises(UsageError, match="finding 1 has no why"):
        read_baseline(path)


def row(case: str, *names: str) -> Row:
    return {"case": case, "findings": [{**model_finding(name, "seen").to_json(), "texts": {}} for name in names]}


def test_a_report_names_the_class_of_each_finding_and_leaves_out_notes_and_parts() -> None:
    models = {"ForCausalLM a": "AForCausalLM", "ForCausalLM b": "BForCausalLM", "ForMaskedLM a": "AForMaskedLM"}
    rows = [row("ForCausalLM b", "rows-mixed", "pad-row-overwritten"), row("ForCausalLM a", "rows-mixed"),
            {"case": "ForMaskedLM a", "failure": "not done after 1 s"}]  # fmt: skip
    known = [{"model": "ForCausalLM *", "name": "no-positions", "why": "w"},
             {"model": "AForCausalLM", "name": "rows-mixed", "why": "w"},
             {"model": "ForMaskedLM *", "name": "rows-mixed", "why": "w"}]  # fmt: skip
    report, gone = scan_report([*rows, {"case": "x", "part": "reads no token ids"}], models | {"x": "X"}, {}, known)
    assert [(finding.name, finding.evidence) for finding in report.findings] == [
        ("rows-mixed", "class BForCausalLM: seen")
    ]
    assert report.skipped == [("AForMaskedLM", "not done after 1 s")]
    assert gone == known[:1], "a class that was not examined says nothing about its entries"
    assert str(report).splitlines()[-1] == "classes: 2 examined, 1 left out; findings: 1 new, 1 known"
    assert report.findings_in("ko")[0].evidence.startswith("BForCausalLM 클래스: ")
    assert report.lines("ko")[-1] == "클래스: 검사 2개, 제외 1개. 발견: 새로운 것 1개, 알려진 것 1개"
