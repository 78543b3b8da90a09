"""`generate` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Call, Printed
from tests.runs.language import make_language_config, write_play
from tests.training.parts import CollectingListener

from manyheads.inference.generator import GenerateOptions, Generator
from manyheads.runs.train import train


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generate")
    config = make_language_config(write_play(folder / "text"), training={"steps": 8, "save_every": 8})
    train(config, folder / "run", listener=CollectingListener())
    return folder / "run"


def test_generate_prints_the_samples_of_the_generator(model: Path, call: Call) -> None:
    command = "generate", model, "--prompt", "ANNA", "--samples", 2, "--max-tokens", 30
    (right,) = Generator.load(model).generate(["ANNA"], GenerateOptions(samples=2, max_tokens=30))
    text = "".join(f"ANNA{sample.text}\n---\n" for sample in right.samples).removesuffix("---\n")
    assert call(*command) == call(*command, "--stream") == Printed(text, "")


def test_json_holds_the_documented_keys(model: Path, call: Call) -> None:
    command = "generate", model, "--json", "--max-tokens", 7, "--temperature", 0, "--stop", "\n"
    (generated,) = json.loads(call(*command).out)
    assert generated.keys() == {"prompt", "samples", "truncated", "unknown"}
    (sample,) = generated["samples"]
    assert sample.keys() == {"text", "tokens", "token_scores", "log_probability", "ended", "warnings"}


def test_a_file_is_one_prompt_and_truncated_or_unknown_tokens_are_reported(
    model: Path, tmp_path: Path, call: Call
) -> None:
    path = tmp_path / "start.txt"
    path.write_text("ANNA:\nétrange, and longer than sixteen\n", encoding="utf-8")
    output = tmp_path / "out.txt"
    printed = call("generate", model, path, "--max-tokens", 5, "--output", output)
    assert printed.out == ""
    assert output.read_text(encoding="utf-8").startswith("ANNA:\nétrange, and longer than sixteen")
    assert "longer than the 16 tokens" in printed.err
    assert "<unk>" in printed.err
    assert call("-q", "generate", model, path, "--max-tokens", 5).err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt", "a", "x.txt"], "Give one"),
        (["--stream", "--json"], "--stream"),
        (["--stop", ""], "--stop needs a text"),
        (["--temperature", "0", "--samples", "2"], "always writes the same"),
        (["--temperature", "-1"], "--temperature"),
        (["--top-p", "0"], "--top-p"),
        (["--max-tokens", "0"], "--max-tokens"),
    ],
)
def test_a_mistake_in_the_options_is_one_line(model: Path, call: Call, arguments: list[str], message: str) -> None:
    printed = call("generate", model, *arguments, code=2)
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_an_empty_file_is_refused(tmp_path: Path, model: Path, call: Call) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    call("generate", model, empty, code=2)
