"""A user's model is loaded by its name, and examined."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from specimens import peers
from transformer_doctor.command import transformer_doctor

pytestmark = pytest.mark.usefixtures("one_length")
PROGRAM = """
from specimens.planted import BOS, EOS, PAD, Trainer, Transformer
from beside import DEFECT

def build_model():
    return Transformer(DEFECT)

def sound():
    return Transformer()

def taught():
    model = Transformer()
    trainer = Trainer(model)
    return {"model": model, "train_step": trainer.step}

def fails():
    raise ValueError("no weights here")

def failing_model():
    def model(source, target):
        raise RuntimeError("no such layer")
    return model

def renamed():
    state = {name.replace("output", "head"): value for name, value in Transformer().state_dict().items()}
    model = Transformer()
    model.load_state_dict(state, strict=False)
    return model

def partly():
    model = Transformer()
    model.load_state_dict({"output.bias": model.output.bias}, strict=False)
    return model

def apart():
    return {"vocab_size": 23}

class Needy(Transformer):
    def __init__(self, width, heads):
        super().__init__()

def scores(source, target, inner=Transformer().eval()):
    return inner(source, target)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "beside.py").write_text("DEFECT = 9\n", encoding="utf-8")
    (tmp_path / "theirs.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "theirs", raising=False)
    return str(tmp_path / "theirs.py")


def run(words: list[str]) -> int:
    """Run the command; return its exit code."""
    with pytest.raises(SystemExit) as end:
        transformer_doctor(words)
    return int(str(end.value.code))


def report(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = run([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_function_of_a_file_is_examined_and_every_guess_is_reported(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, document = report(capsys, f"{program}:build_model")
    assert code == 1
    assert [finding["name"] for finding in document["findings"]] == ["no-source-padding-mask"]
    assert document["facts"] == {"model": "Transformer, 6,353 parameters"}
    remarks = " ".join(document["remarks"])
    for guess in ("vocab_size = 23", "pad = 0", "bos = 1", "eos = 2"):
        assert f"{guess}, guessed from" in remarks


def test_options_replace_guesses(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = report(
        capsys, f"{program}:sound", "--vocab-size", "23,23", "--pad", "0", "--bos", "1", "--eos", "2"
    )
    assert code == 0
    assert "guessed" not in " ".join(document["remarks"])
    strict = f"{program}:sound --vocab-size 23 --strict".split()
    assert (report(capsys, *strict)[0], report(capsys, *strict, "--quick")[0]) == (1, 0)
    _, document = report(capsys, f"{program}:sound", "--vocab-size", "23")
    assert "pad = 0, guessed from padding_idx" in document["remarks"]


def test_a_function_of_token_ids_is_accepted_as_a_model(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(capsys, f"{program}:scores", "--vocab-size", "23", "--pad", "0")[0] == 0


@pytest.mark.usefixtures("few_updates")
def test_quick_skips_the_checks_that_train(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    checks = "on random targets the loss stays above chance"
    _, document = report(capsys, f"{program}:taught", "--quick")
    assert {"check": checks, "reason": "quick leaves it out"} in document["skipped"]
    _, document = report(capsys, f"{program}:taught")
    assert checks in document["asked"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (":fails", "theirs.py:fails raised ValueError: no weights here (theirs.py, line 17)."),
        (":failing_model", "raised RuntimeError: no such layer"),
        (":Needy", "needs width, heads. Write a function without arguments"),
        (":apart", "the dictionary has no key model"),
        (":nothing", "there is no nothing. There are "),
        (":", "names no model. Say which: "),
        ("", "names no model. Say which: "),
        (":sound --vocab-size 99", "see whether vocab_size"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    program: str, name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = name.split(" ")
    assert run([f"{program}{first}", *others]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="the name would be a path")
def test_the_drive_of_a_file_is_not_taken_for_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "C:\\proj\\model.py"
    Path(name).write_text("class Net: pass\n", encoding="utf-8")
    assert run([name]) == 2
    assert capsys.readouterr().err.endswith(f"Say which: {name}:Net.\n")


def test_a_hugging_face_directory_is_examined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    peers.make("marian").save_pretrained(tmp_path / "marian")
    code, document = report(capsys, str(tmp_path / "marian"))
    assert (code, document["facts"]) == (0, {"model": "MarianMTModel, 7,786 parameters"})


def test_a_pickle_is_never_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    assert run([str(tmp_path)]) == 2
    assert "has no weights as safetensors" in capsys.readouterr().err


@pytest.mark.parametrize(("function", "found"), [("renamed", ["weights-not-loaded"]), ("partly", [])])
def test_weights_that_strict_false_skips_are_named(
    program: str, capsys: pytest.CaptureFixture[str], function: str, found: list[str]
) -> None:
    _, document = report(capsys, f"{program}:{function}", "--quick")
    assert [finding["name"] for finding in document["findings"]] == found
    assert all("a loaded state lacks output." in finding["evidence"] for finding in document["findings"])
