"""Every command that a verb prints can be copied into a shell, for folders and files of any name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from manyheads.cli.main import run
from manyheads.config.load import parse_config
from manyheads.data.builtin import builtin_pairs
from manyheads.errors import ManyheadsError

RUN = "my run [1]"
COMMAND = re.compile(r"(?:^|[\s`])(manyheads (?!doctor --explain)[a-z]+ [^`\n]*)", re.MULTILINE)
SMALL = [
    "training.steps=2", "training.save_every=1", "training.average_checkpoints=1", "training.valid_sentences=2",
    "model.d_model=8", "model.d_ff=8", "model.num_heads=1", "tokenizer.kind=characters", "data.limit=40",
    "tokenizer.sampling=0",
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(*names: str) -> list[str]:
    return [word for name in names for word in ("--set", name)]


def commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """Run a command line, and return the commands that it prints, as a shell reads them."""
    run(words)
    printed = capsys.readouterr()
    return [
        [word.rstrip(".,;") for word in shlex.split(found)] for found in COMMAND.findall(printed.out + printed.err)
    ]


def test_commands_name_a_run_with_blanks_and_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    *doctor, evaluate = commands(["train", "demo-de-en", "-o", RUN, *settings(*SMALL)], capsys)
    assert [words[:3] for words in doctor] == [["manyheads", "doctor", RUN]], "the verdict of two updates"
    assert evaluate == ["manyheads", "evaluate", RUN]
    assert run([*evaluate[1:], *settings("search.beam_size=1")]) == 0
    averaged = f"{RUN}-averaged"
    assert commands(["train", "average", RUN], capsys)[-1] == ["manyheads", "evaluate", averaged, "--against", RUN]
    (translate,) = commands(["classify", RUN, "x.txt"], capsys)
    assert translate == ["manyheads", "translate", RUN]
    (export,) = commands(["export", RUN, "--to", "huggingface"], capsys)
    assert export == ["manyheads", "export", RUN, "--to", "huggingface", "-o", "DEST"]
    (add,) = commands(["serve", "keys", "list", "my keys.json"], capsys)
    assert add == ["manyheads", "serve", "keys", "add", "my keys.json", "NAME"]


def test_the_commands_from_a_corpus_to_a_training_follow_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path("my text")
    folder.mkdir()
    pairs = list(builtin_pairs("de-en", "train", source="de", target="en"))[:300]
    for side, language in (("source", "de"), ("target", "en")):
        lines = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
        (folder / f"a (1).{language}").write_text(lines, encoding="utf-8")
    files = [str(folder / f"a (1).{language}") for language in ("de", "en")]
    (split,) = commands(["data", "convert", *files, "-o", "my text/lines"], capsys)
    (init,) = commands([*split[1:], "-o", "my data", "--equal-only"], capsys)
    init[2] = "my model"
    doctor, train = (line[:3] for line in commands(init[1:], capsys))
    assert (doctor[1], train[1]) == ("doctor", "train")
    (cleaned,) = commands(["data", "clean", *train[2:], "-o", "my clean text", *settings("clean.loss=0")], capsys)
    assert cleaned[:3] == train[:3]
    assert run([*cleaned[1:], *settings(*SMALL)]) == 0


def test_a_missing_folder_of_a_known_corpus_is_fetched_by_the_command_in_the_message() -> None:
    from manyheads.data.corpus import read_pairs

    config = parse_config({"data": {"source": "de", "target": "en", "root": "my data/multi30k"}}, origin="test")
    with pytest.raises(ManyheadsError, match="manyheads data fetch") as caught:
        read_pairs(config.data, "train")
    (words,) = map(shlex.split, re.findall(r"`(.*?)`", str(caught.value)))
    assert words == ["manyheads", "data", "fetch", "multi30k", "--root", "my data"]
