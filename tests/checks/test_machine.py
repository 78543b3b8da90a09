"""The doctor describes the machine and warns of its limits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from manyheads.checks import machine
from manyheads.checks.catalogue import CATALOGUE
from manyheads.checks.machine import (
    _describe_machine,
    _machine_findings,
    _missing_packages,
    examine_machine,
)
from manyheads.cli.main import run


def test_the_figures_are_those_of_this_process(tmp_path: Path) -> None:
    machine = _describe_machine(tmp_path)
    assert machine.torch == torch.__version__
    assert machine.threads == torch.get_num_threads()
    assert machine.memory_gib is None or machine.memory_gib >= (machine.free_memory_gib or 0) > 0
    assert machine.disk_gib > 0


def test_every_extra_of_the_package_is_listed_with_its_pip_command(tmp_path: Path) -> None:
    missing = _missing_packages()
    assert {"hf", "words", "zstd"} <= set(missing)
    assert "all" not in missing
    facts = replace(_describe_machine(tmp_path), extras={"words": ["spacy"], "zstd": []}).facts()
    assert facts["extra words"] == 'missing: spacy; pip install "manyheads[words]"'
    assert facts["extra zstd"] == "installed"


def test_a_package_for_another_system_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ['httptools; extra == "serve"', 'no-such-loop>=1; sys_platform != "win32" and extra == "serve"']
    monkeypatch.setattr(machine.metadata, "requires", lambda name: needed)
    monkeypatch.setattr(machine.sys, "platform", "linux")
    assert _missing_packages() == {"serve": ["no-such-loop"]}
    monkeypatch.setattr(machine.sys, "platform", "win32")
    assert _missing_packages() == {"serve": []}


def test_an_extra_of_another_package_stands_for_what_it_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    requires = {
        "manyheads": ['bitext[readers]; extra == "train"', 'manyheads[train]; extra == "all"'],
        "bitext": ["numpy", 'no-such-reader>=1; extra == "readers"', 'no-such-disk; extra == "zstd"'],
    }
    monkeypatch.setattr(machine.metadata, "requires", requires.__getitem__)
    assert _missing_packages() == {"train": ["no-such-reader"]}


def test_too_little_memory_or_disk_is_a_warning_with_its_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    good = replace(
        _describe_machine(tmp_path), memory_gib=16.0, disk_gib=100.0, device="cpu", threads=2, processors=2
    )
    assert not list(_machine_findings(good))
    poor = replace(good, memory_gib=1.0, disk_gib=0.5, threads=8)
    names = {finding.name: finding.evidence for finding in _machine_findings(poor)}
    assert set(names) == {"little-memory", "little-disk", "too-many-threads"}
    assert "1.0 GiB" in names["little-memory"]
    monkeypatch.setattr(machine.shutil, "which", lambda name: name)
    assert [finding.name for finding in _machine_findings(good)] == ["gpu-not-used"]
    assert not list(_machine_findings(replace(good, device="cuda")))


def test_the_doctor_command_prints_a_table_or_json_and_returns_the_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected = examine_machine().exit_code
    assert run(["doctor"]) == expected
    assert ["torch", torch.__version__] in [line.split() for line in capsys.readouterr().out.splitlines()]
    assert run(["doctor", "--json"]) == expected
    document = json.loads(capsys.readouterr().out)
    assert document["machine"]["torch"] == torch.__version__
    assert document["ok"] == (expected == 0)


def test_a_warning_gives_exit_code_1_and_is_printed_in_korean_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("manyheads.checks.machine._LEAST_DISK", 1e9)
    assert run(["doctor", "--lang", "ko"]) == 1
    lines = capsys.readouterr().out.splitlines()
    text = CATALOGUE["machine"]["little-disk"].texts["ko"]
    assert f"경고: little-disk ({text.title})" in lines
    assert f"  조치  {text.cure}" in lines
    assert "  - 디스크" in lines
    assert run(["doctor", "--lang", "de"]) == 2


def test_the_file_of_the_c_decoder_or_the_reason_why_it_is_off_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "decoder.so"
    path.touch()
    monkeypatch.setattr(machine, "library", lambda: SimpleNamespace(_name=str(path)))
    monkeypatch.setattr(machine, "instruction_set", lambda: "AVX2")
    assert machine._describe_decoding() == f"the C decoder for AVX2 ({path})"
    monkeypatch.setattr(machine, "library", lambda: None)
    monkeypatch.setattr(machine, "why_none", lambda: "cc cannot compile it: error; see FILE")
    assert machine._describe_decoding() == "torch; the C decoder is off: cc cannot compile it: error; see FILE"
