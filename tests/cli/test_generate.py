"""`generate` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.runs.language import make_language_config, write_play
from tests.training.parts import CollectingListener

from manyheads.cli.main import run
from manyheads.inference.generator import GenerateOptions, Generator
from manyheads.runs.train import train


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generate")
    config = make_language_config(write_play(folder / "text"), training={"steps": 8, "save_every": 8})
    train(config, folder / "run", listener=CollectingListener())
    return folder / "run"


def call(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run([str(one) for one in arguments])
    out, err = capfd.readouterr()
    return code, out, err


def test_generate_prints_the_samples_of_the_generator(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capfd, "generate", model, "--prompt", "ANNA", "--samples", 2, "--max-tokens", 30)
    (right,) = Generator.load(model).generate(["ANNA"], GenerateOptions(samples=2, max_tokens=30))
    assert (code, err) == (0, "")
    assert out == "".join(f"ANNA{sample.text}\n---\n" for sample in right.samples).removesuffix("---\n")
    streamed = call(capfd, "generate", model, "--prompt", "ANNA", "--samples", 2, "--max-tokens", 30, "--stream")
    assert streamed == (0, out, "")


def test_json_holds_the_documented_keys(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capfd, "generate", model, "--json", "--max-tokens", 7, "--temperature", 0, "--stop", "\n")
    (one,) = json.loads(out)
    assert code == 0
    assert one.keys() == {"prompt", "samples", "truncated", "unknown"}
    (sample,) = one["samples"]
    assert sample.keys() == {"text", "tokens", "token_scores", "log_probability", "ended", "warnings"}


def test_a_file_is_one_prompt_and_truncated_or_unknown_tokens_are_reported(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "start.txt"
    path.write_text("ANNA:\nétrange, and longer than sixteen\n", encoding="utf-8")
    output = tmp_path / "out.txt"
    code, out, err = call(capfd, "generate", model, path, "--max-tokens", 5, "--output", output)
    assert (code, out) == (0, "")
    assert output.read_text(encoding="utf-8").startswith("ANNA:\nétrange, and longer than sixteen")
    assert "longer than the 16 tokens" in err
    assert "<unk>" in err
    assert call(capfd, "-q", "generate", model, path, "--max-tokens", 5)[2] == ""


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
def test_a_mistake_in_the_options_is_one_line(
    model: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, out, err = call(capfd, "generate", model, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_an_empty_file_is_refused(tmp_path: Path, model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    assert call(capfd, "generate", model, empty)[0] == 2
