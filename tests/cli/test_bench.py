"""`bench`: measured figures of a short training, and of translating some sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Call
from tests.runs.parts import make_config, write_corpus

from manyheads.cli.recipes import _describe

KEYS = {
    "unit", "median", "min", "max", "device", "threads", "versions", "source_tokens_per_second", "padding",
    "gflops", "ceiling_gflops", "share_of_ceiling", "verdict", "peak_memory_mib", "parameters", "precision",
}  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return the configuration of a tiny model on a tiny text."""
    path = tmp_path / "tiny.toml"
    lines = _describe(make_config(write_corpus(tmp_path / "corpus")))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_json_holds_the_figures_with_device_threads_and_versions(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    output = call("bench", "train", config, "--rounds", "2", "--updates", "3", "--json")
    found = json.loads(output.out)
    assert found.keys() == KEYS
    assert found["unit"] == "target tokens/s"
    assert 0 < found["min"] <= found["median"] <= found["max"]
    assert 0 < found["padding"] < 1
    assert found["share_of_ceiling"] == pytest.approx(found["gflops"] / found["ceiling_gflops"])
    assert found["peak_memory_mib"] > 10
    assert "round 2 of 2" in output.err
    assert sorted(tmp_path.rglob("*")) == before, "nothing is kept"


def test_the_text_output_of_training_is_three_lines_and_a_verdict(config: Path, call: Call) -> None:
    out = call("bench", "train", config, "--rounds", "1", "--updates", "1", "-q").out
    first, second, third, *verdict = out.strip().split("\n")
    assert [line.partition(":")[0] for line in verdict] == ["verdict", "verdict"]
    assert "target tokens/s" in first
    assert "useful GFLOP/s" in second
    assert "MiB at most" in third


DECODE_KEYS = {
    "unit", "median", "min", "max", "device", "threads", "versions", "modes", "beam_size", "precision",
    "peak_memory_mib", "parameters", "verdict",
}  # fmt: skip


def test_the_figures_of_decoding_are_printed_as_json_and_as_text(config: Path, tmp_path: Path, call: Call) -> None:
    out = tmp_path / "run"
    call("train", config, "-o", out, "-q")
    command = f"bench decode {out} --beam 1 --beam 3 --batch 5 --sentences 12 --rounds 2 --device cpu".split()
    output = call(*command, "--json")
    found = json.loads(output.out)
    assert found.keys() == DECODE_KEYS
    assert found["unit"] == "sentences/s"
    assert 0 < found["min"] <= found["median"] <= found["max"]
    assert [(mode["beam_size"], mode["batch"]) for mode in found["modes"]] == [(1, 5), (3, 5)]
    assert found["peak_memory_mib"] > 10
    assert "round 2 of 2" in output.err
    first, second, third, *_ = call(*command, "-q").out.strip().split("\n")
    assert first.startswith("beam 1, 5 a call: ")
    assert "sentences/s" in second
    assert "MiB at most" in third
