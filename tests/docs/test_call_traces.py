"""The call sequences of the book: each named function is called, in that order."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from tools.walks import Function, calls_seen, file_of

from manyheads import Translator, train
from manyheads.config.load import load_config
from manyheads.inference.native.build import library

# A file, or a function with empty brackets, in backticks.
NAMED = re.compile(r"`([\w/]+\.(?:py|c|h))`|`([\w.]+)\(\)`")
ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "howto" / "python-api.md").read_text(encoding="utf-8")
CONFIG = """\
task = "translation"
[data]
root = "{root}"
valid = ["train.de", "train.en"]
source = "de"
target = "en"
train = ["train.de", "train.en"]
drop_overlap = false  # the validation set is the training set
[tokenizer]
kind = "words"
[model]
d_model = 8
d_ff = 8
num_heads = 2
num_encoder_layers = 1
num_decoder_layers = 1
[training]
steps = 2
save_every = 1
batch_tokens = 20
device = "cpu"
precision = "fp32"
[search]
beam_size = 2
max_length_ratio = 1.0
max_length_offset = 2
"""
PAIRS = [
    ("Ein Hund läuft .", "A dog runs ."),
    ("Die Frau liest .", "The woman reads ."),
    ("Es schneit .", "It snows ."),
]
NEEDS_C = pytest.mark.skipif(library() is None, reason="there is no C library")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a corpus of three pairs and its configuration, and train a run on it."""
    folder = tmp_path_factory.mktemp("traces")
    for index, language in enumerate(("de", "en")):
        (folder / f"train.{language}").write_text("".join(f"{pair[index]}\n" for pair in PAIRS), encoding="utf-8")
    (folder / "config.toml").write_text(CONFIG.replace("{root}", folder.as_posix()), encoding="utf-8")
    train(load_config(folder / "config.toml"), folder / "run")
    return folder


def section(text: str, heading: str) -> str:
    """Return the text below a heading, up to the next one."""
    return re.split(r"^#", text.split(f"{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def named_calls(text: str) -> list[Function]:
    """Return the functions that a text names, in order; each belongs to the file that was named last.

    Functions of C are left out.
    """
    calls, file = [], ""
    for path, function in NAMED.findall(text):
        file = path or file
        if function and file.endswith(".py") and (file, function) not in calls:
            calls.append((file, function))
    return calls


def first_calls(function: Callable[[], object]) -> list[Function]:
    """Call a function, and return the functions of the package that it calls, in order of their first calls."""
    codes: dict[CodeType, str | None] = {}

    def observe(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code not in codes:
            codes[frame.f_code] = file_of(frame)

    with calls_seen(observe):
        function()
    return [(file, code.co_qualname) for code, file in codes.items() if file is not None]


def check(named: list[Function], called: list[Function]) -> None:
    """Compare the functions that a text names with those that were called, in order of their first calls."""
    assert len(named) > 2
    assert not [call for call in named if call not in called], "named, and not called"
    assert named == sorted(named, key=called.index), "called in another order"


def test_the_documented_calls_of_a_training_are_made_in_order(folder: Path, tmp_path: Path) -> None:
    config = load_config(folder / "config.toml")
    check(named_calls(section(PAGE, "## In training")), first_calls(lambda: train(config, tmp_path / "run")))


@pytest.mark.parametrize(
    ("native", "heading"), [pytest.param("1", "## In translation", marks=NEEDS_C), ("0", "## Without C")]
)
def test_the_documented_calls_of_a_translation_are_made_in_order(
    native: str, heading: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANYHEADS_NATIVE", native)
    called = first_calls(lambda: Translator.load(folder / "run").translate(["Ein Hund liest ."]))
    check(named_calls(section(PAGE, heading)), called)


def test_the_documentation_names_every_file_of_a_run(folder: Path) -> None:
    page = (ROOT / "docs" / "reference" / "run-directory.md").read_text(encoding="utf-8")
    top = {path.name for path in (folder / "run").iterdir()} - {".lock"}
    inner = {path.name for path in next((folder / "run" / "checkpoints").glob("step-*")).iterdir()}
    missing = {name for name in top | inner if f"{name}" not in page and f"{name.rsplit('.', 1)[0]}.*" not in page}
    assert not missing
    assert len(top) > 6
