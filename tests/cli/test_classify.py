"""`classify` with a real model: lines in, labels out."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Call
from tests.runs.labelled import labelled_config, write_labelled
from tests.stdin import set_stdin
from tests.training.parts import CollectingListener

from manyheads.cli.main import run
from manyheads.runs.train import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    config = labelled_config(write_labelled(folder / "text"), data={"max_length": 12}, training={"steps": 2})
    train(config, folder / "run", listener=CollectingListener())
    return folder / "run"


def test_each_line_gets_a_label_and_a_probability_and_empty_ones_stay(
    trained: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: Call
) -> None:
    data = "a great film\n\ndull\u2028plot\tso\n" + "awful " * 100_000 + "\n한글"
    set_stdin(monkeypatch, data.encode())
    err = call("classify", trained, "--output", tmp_path / "out").err
    lines = (tmp_path / "out").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 6
    assert (lines[1], lines[5]) == ("", "")
    for line in (lines[0], lines[2], lines[3], lines[4]):
        label, probability = line.split("\t")
        assert label in ("0", "1")
        assert 0.5 <= float(probability) <= 1
    assert "longer than 12 tokens, and only their beginning was read: line 4" in err


def test_json_holds_all_probabilities(
    trained: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "text").write_text("a great film\n\n", encoding="utf-8")
    assert run(["classify", str(trained), str(tmp_path / "text"), "--json", "--output", str(tmp_path / "out")]) == 0
    first, second = json.loads((tmp_path / "out").read_text(encoding="utf-8"))
    assert set(first) == {"text", "label", "probability", "probabilities", "truncated"}
    assert first["probability"] == max(first["probabilities"].values())
    assert (second["label"], second["probabilities"]) == ("", {})


@pytest.mark.parametrize("test", ['test = "test"', ""])
def test_the_next_command_that_training_prints_works(test: str, trained: Path, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(
        f"""task = "classification"
[data]
root = "{trained.parent / "text"}"
language = "en"
{test}
[tokenizer]
kind = "characters"
[model]
d_model = 8
num_heads = 2
num_encoder_layers = 1
[training]
steps = 1
batch_sentences = 9
""",
        encoding="utf-8",
    )
    _, found, command = call("train", file, "-o", tmp_path / "run").out.strip().rpartition("Next: manyheads ")
    assert found
    assert run(shlex.split(command)) == 0
