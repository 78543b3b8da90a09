"""Signals to real processes in every phase of a training: an immediate answer, no lost update, the exit code."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.system.test_interruption import EXIT_CODES, TIMEOUT, assert_same

from manyheads.checkpoint import RunDirectory
from manyheads.runs.signals import _REPEAT

pytestmark = pytest.mark.slow

CONFIG = """
[data]
root = "{root}"
source = "aa"
target = "bb"
valid = "{valid}"
drop_overlap = false
[tokenizer]
kind = "{tokenizer}"
vocab_size = {vocab_size}
byte_fallback = false
[model]
d_model = {width}
d_ff = {width}
num_heads = 2
num_encoder_layers = {layers}
num_decoder_layers = {layers}
[training]
steps = 4
batch_tokens = {batch_tokens}
warmup_steps = 2
log_every = 1
save_every = 2
average_checkpoints = 2
valid_sentences = {valid_sentences}
precision = "fp32"
[search]
max_length_offset = 20
"""
# A phase may end before it is printed: here each phase with a unit is printed at once, and then waits.
PROGRAM = """
import time
from contextlib import contextmanager
from manyheads.__main__ import main
from manyheads.cli import progress

class SlowProgress(progress._PlainProgress):
    @contextmanager
    def phase(self, name, total=None, unit=""):
        with super().phase(name, total, unit) as advance:
            if unit:
                self.message(name)
                time.sleep(0.4)
            yield advance

progress._PlainProgress = SlowProgress
main()
"""
DEFAULTS = {
    "valid": "valid", "tokenizer": "characters", "vocab_size": 60, "width": 32, "layers": 1, "batch_tokens": 600,
    "valid_sentences": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write random words: a small and a large training set, and a validation set."""
    folder, generator = tmp_path_factory.mktemp("corpus"), random.Random(2)
    sizes = {"train": 900, "large": 150_000, "valid": 20}
    for split, count in sizes.items():
        lines = [
            " ".join("".join(generator.choices("abcdefghij", k=generator.randint(2, 9))) for _ in range(3))
            for _ in range(count)
        ]
        (folder / f"{split}.aa").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{split}.bb").write_text("".join(f"{line[::-1]}\n" for line in lines))
    return folder


class Training:
    """A process that trains, in its own session; unless it is `fast`, its phases wait at their beginning."""

    def __init__(
        self, corpus: Path, folder: Path, train: str = "train", *, fast: bool = False, **settings: Any
    ) -> None:
        self.program = ["-m", "manyheads"] if fast else ["-c", PROGRAM]
        self.run = RunDirectory(folder / "run")
        self.config = folder / "config.toml"
        self.errors = folder / "stderr"
        values = DEFAULTS | {"root": corpus.as_posix()} | settings
        self.config.write_text(CONFIG.format(**values).replace("[data]\n", f'[data]\ntrain = "{train}"\n'))
        self.process = self.start()

    def command(self) -> list[str]:
        return [sys.executable, *self.program, "train", str(self.config), "--output", str(self.run.path)]

    def start(self) -> subprocess.Popen[bytes]:
        with self.errors.open("wb") as errors:
            return subprocess.Popen(
                self.command(), stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
            )

    def wait_for(self, event: Callable[[], bool]) -> None:
        """Wait for an event, which must occur before the end of the process."""
        start = time.monotonic()
        while not event():
            assert self.process.poll() is None, f"the process ended too early:\n{self.stderr}"
            assert time.monotonic() - start < TIMEOUT, self.stderr
            time.sleep(0.005)

    def stop(self, number: signal.Signals) -> list[str]:
        """Signal the process and its group, as `timeout` does; return what it printed afterwards."""
        before = len(self.stderr)
        self.process.send_signal(number)
        os.killpg(self.process.pid, number)
        assert self.process.wait(TIMEOUT) == EXIT_CODES[number], self.stderr
        assert "Traceback" not in self.stderr
        return self.stderr[before:].splitlines()

    def resume(self) -> None:
        """Train to the end."""
        subprocess.run(self.command(), check=True, capture_output=True)

    @property
    def stderr(self) -> str:
        return self.errors.read_text(encoding="utf-8")

    def has_printed(self, text: str) -> Callable[[], bool]:
        return lambda: text in self.stderr

    def logged(self, kind: str) -> list[int]:
        path = self.run.metrics_path
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else []
        return [record["step"] for record in map(json.loads, lines) if record["kind"] == kind]

    def validated(self, step: int) -> bool:
        """Return whether a checkpoint is validated, according to its own state."""
        path = self.run.checkpoints.folder_of(step) / "state.json"
        return path.is_file() and not json.loads(path.read_text())["state"]["progress"]["pending"]

    def pending(self, step: int) -> bool:
        """Return whether a checkpoint is saved and not validated yet."""
        return step in self.run.checkpoints.steps() and step not in self.logged("validation")


# --- start-up ---


@pytest.mark.parametrize(
    ("phase", "settings"),
    [
        ("reading the text", {}),
        ("training the tokenizer", {"train": "large", "tokenizer": "unigram", "vocab_size": 2_000}),  # a minute
        ("tokenizing", {}),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_preparation_ends_the_training_with_one_word(
    corpus: Path, tmp_path: Path, phase: str, settings: dict[str, Any], number: signal.Signals
) -> None:
    training = Training(corpus, tmp_path, **settings)
    training.wait_for(training.has_printed(phase))
    assert training.stop(number) == [{signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]]
    assert not training.run.exists


# --- updates ---


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_an_update_is_answered_at_once_and_the_update_saved(
    corpus: Path, tmp_path: Path, number: signal.Signals
) -> None:
    training = Training(corpus, tmp_path, width=256, layers=2, batch_tokens=9_000)
    training.wait_for(lambda: training.logged("step") == [1])
    printed = training.stop(number)
    (step,) = training.run.checkpoints.steps()
    assert "stopping after this step; press again to abort" in printed
    assert f"stopped and saved at step {step:,}; run the same command again to resume" in printed


def test_a_later_signal_aborts_the_update_and_the_last_checkpoint_is_intact(corpus: Path, tmp_path: Path) -> None:
    training = Training(corpus, tmp_path, width=256, layers=2, batch_tokens=9_000)
    training.wait_for(lambda: training.validated(2))
    training.process.send_signal(signal.SIGTERM)
    training.wait_for(training.has_printed("stopping"))
    training.process.send_signal(signal.SIGSTOP)  # keeps the update from ending
    time.sleep(1.1 * _REPEAT)
    training.process.send_signal(signal.SIGTERM)
    training.process.send_signal(signal.SIGCONT)
    assert training.process.wait(TIMEOUT) == 143
    assert training.stderr.endswith("terminated\n")
    assert "Traceback" not in training.stderr
    assert training.run.checkpoints.steps() == [2]
    assert training.run.checkpoints.read(2).step == 2


# --- saving ---


def test_a_checkpoint_that_is_being_saved_at_a_signal_is_completed(corpus: Path, tmp_path: Path) -> None:
    training = Training(corpus, tmp_path, width=512, layers=6)
    training.wait_for(lambda: any(training.run.checkpoints.folder.glob(".draft-*")))
    printed = training.stop(signal.SIGTERM)
    assert printed[0] in (
        "stopping; the checkpoint of step 2 is being saved",
        "stopping; the checkpoint of step 2 is saved",  # the signal arrived after the last byte
    )
    assert training.run.checkpoints.read(2).state["progress"]["pending"]


# --- validation ---


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("phase", "settings"),
    [
        ("validating: loss", {}),
        ("validating: translating", {"valid_sentences": 20}),
    ],
)
def test_an_interrupted_validation_is_repeated_when_training_resumes(
    corpus: Path, tmp_path: Path, phase: str, settings: dict[str, Any], number: signal.Signals
) -> None:
    training = Training(corpus, tmp_path, **settings)
    training.wait_for(training.has_printed(phase))
    assert training.pending(2)
    printed = training.stop(number)
    assert printed[0] == "stopping; the checkpoint of step 2 is saved"
    assert "stopped and saved at step 2; run the same command again to resume" in printed
    assert training.run.checkpoints.steps() == [2]
    assert training.logged("validation") == []


def test_an_interrupted_validation_changes_no_loss_validation_or_weight(corpus: Path, tmp_path: Path) -> None:
    """Interrupt each of the two validations, and compare with an uninterrupted training."""
    (tmp_path / "whole").mkdir()
    whole = Training(corpus, tmp_path / "whole", fast=True, valid_sentences=20)
    assert whole.process.wait(TIMEOUT) == 0
    for step in (2, 4):
        folder = tmp_path / f"step-{step}"
        folder.mkdir()
        training = Training(corpus, folder, fast=True, valid_sentences=20)
        training.wait_for(lambda step=step, training=training: step in training.run.checkpoints.steps())  # type: ignore[misc]
        training.process.send_signal(signal.SIGTERM)
        if training.process.wait(TIMEOUT):
            training.resume()
        assert_same(training.run.path, whole.run.path)
        assert validations(training.run) == validations(whole.run)


def validations(run: RunDirectory) -> list[Any]:
    lines = run.metrics_path.read_text(encoding="utf-8").split("\n")[:-1]
    return [record for record in map(json.loads, lines) if record["kind"] == "validation"]


# --- averaging at the end ---


def test_checkpoints_are_averaged_by_the_same_command_after_a_signal_during_the_average(
    corpus: Path, tmp_path: Path
) -> None:
    training = Training(corpus, tmp_path)
    training.wait_for(lambda: 4 in training.logged("validation"))
    printed = training.stop(signal.SIGTERM)
    assert printed[-1] == "stopped and saved at step 4; run the same command again to resume"
    assert not training.run.described
    training.process = training.start()
    assert training.process.wait(TIMEOUT) == 0
    assert "mean of the last 2 checkpoints" in training.stderr
    assert training.run.described
