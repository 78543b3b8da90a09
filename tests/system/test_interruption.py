"""Signals to real processes in every phase of a training: an immediate answer, no lost update, the exit code.

After Ctrl-C, SIGTERM, SIGHUP or kill -9, the same command resumes, and ends as an uninterrupted run, bit for bit.
tests/runs/test_train.py tests a kill at every write in one process, and tests/runs/test_signals.py each signal.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.system.kills import kill_and_compare

from manyheads.__main__ import main
from manyheads.checkpoint.checkpoints import TrainingRun
from manyheads.cli import progress
from manyheads.runs.signals import _REPEAT

pytestmark = pytest.mark.slow

TIMEOUT = 300  # seconds
EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGKILL: -9}
CONFIG = """
[data]
train = "{train}"
root = "{root}"
source = "aa"
target = "bb"
drop_overlap = false
[tokenizer]
kind = "{tokenizer}"
vocab_size = {vocab_size}
[model]
d_model = {width}
d_ff = {width}
num_heads = 2
num_encoder_layers = {layers}
num_decoder_layers = {layers}
[training]
steps = {steps}
batch_tokens = {batch_tokens}
warmup_steps = 2
log_every = 1
save_every = {save_every}
average_checkpoints = {average}
valid_sentences = {valid_sentences}
precision = "fp32"
[search]
max_length_offset = 20
"""
DEFAULTS = {
    "train": "train", "tokenizer": "characters", "vocab_size": 60, "width": 32, "layers": 1, "steps": 4,
    "batch_tokens": 600, "save_every": 2, "average": 2, "valid_sentences": 0,
}  # fmt: skip


class SlowProgress(progress._PlainProgress):
    """A phase may end before it is printed: here each phase with a unit is printed at once, and then waits."""

    @contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Any]:
        with super().phase(name, total, unit) as advance:
            if unit:
                self.message(name)
                time.sleep(0.4)
            yield advance


def run_program(words: list[str], errors: Path, fast: bool) -> None:
    """Run the program in this process, in a session of its own, with its stderr written to a file."""
    os.setsid()
    for number, path in ((1, os.devnull), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if not fast:
        progress._PlainProgress = SlowProgress  # type: ignore[misc]
    sys.argv = ["manyheads", *words]
    main()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write random words: a small and a large training set, and a validation set."""
    folder, generator = tmp_path_factory.mktemp("corpus"), random.Random(2)
    sizes = {"train": 900, "large": 50_000, "valid": 20}
    for split, count in sizes.items():
        lines = [
            " ".join("".join(generator.choices("abcdefghij", k=generator.randint(2, 9))) for _ in range(3))
            for _ in range(count)
        ]
        (folder / f"{split}.aa").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{split}.bb").write_text("".join(f"{line[::-1]}\n" for line in lines))
    return folder


class Training:
    """A process that trains, in its own session; unless it is `fast`, its phases wait at their beginning.

    It is forked from one that has imported all modules, to save seconds.
    """

    def __init__(self, corpus: Path, folder: Path, *, fast: bool = False, **settings: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.fast = fast
        self.run = TrainingRun(folder / "run")
        self.config = folder / "config.toml"
        self.errors = folder / "stderr"
        self.config.write_text(CONFIG.format(**(DEFAULTS | {"root": corpus.as_posix()} | settings)))
        self.start()

    def command(self) -> list[str]:
        return ["train", str(self.config), "--output", str(self.run.path)]

    def start(self) -> None:
        processes = multiprocessing.get_context("forkserver")
        processes.set_forkserver_preload([__name__, "manyheads.cli.main", "manyheads.runs.train"])
        self.errors.write_bytes(b"")
        self.process = processes.Process(target=run_program, args=(self.command(), self.errors, self.fast))
        self.process.start()
        self.pid = self.process.pid or 0

    def end(self) -> int | None:
        """Wait for the end of the process; return its exit code, None if it runs on."""
        self.process.join(TIMEOUT)
        return self.process.exitcode

    def wait_for(self, event: Callable[[], bool]) -> None:
        """Wait for an event, which must occur before the end of the process."""
        start = time.monotonic()
        while not event():
            assert self.process.exitcode is None, f"the process ended too early:\n{self.stderr}"
            assert time.monotonic() - start < TIMEOUT, self.stderr
            time.sleep(0.005)

    def stop(self, number: signal.Signals) -> list[str]:
        """Signal the process and its group, as `timeout` does; return what it printed afterwards."""
        before = len(self.stderr)
        os.kill(self.pid, number)
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(self.pid, number)
        assert self.end() == EXIT_CODES[number], self.stderr
        assert "Traceback" not in self.stderr
        return self.stderr[before:].splitlines()

    @property
    def stderr(self) -> str:
        return self.errors.read_text(encoding="utf-8")

    def has_printed(self, text: str) -> Callable[[], bool]:
        return lambda: text in self.stderr

    def logged(self, kind: str) -> list[int]:
        return [record["step"] for record in self.records() if record["kind"] == kind]

    def records(self) -> list[Any]:
        path = self.run.metrics_path
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else []
        return [json.loads(line) for line in lines]

    def validated(self, step: int) -> bool:
        """Return whether a checkpoint is validated, according to its own state."""
        path = self.run.checkpoints.folder_of(step) / "state.json"
        return path.is_file() and not json.loads(path.read_text())["state"]["progress"]["pending"]

    def assert_same(self, other: Training) -> None:
        """Compare weights, losses and validations bit for bit."""
        expected, found = (load_file(program.run.path / "model.safetensors") for program in (other, self))
        assert expected.keys() == found.keys()
        for name in expected:
            assert torch.equal(expected[name], found[name]), name
        losses, others = ([(record["step"], record["loss"]) for record in each.records()] for each in (self, other))
        assert losses == others
        validations, others = (
            [record for record in each.records() if record["kind"] == "validation"] for each in (self, other)
        )
        assert validations == others


# --- start-up ---


@pytest.mark.parametrize(
    ("phase", "delay", "number", "settings"),
    [
        ("reading the text", 0, signal.SIGINT, {}),
        (  # takes half a minute in code of C++, which has begun after the delay
            "training the tokenizer", 0.6, signal.SIGTERM,
            {"train": "large", "tokenizer": "unigram", "vocab_size": 2_000},
        ),
    ],
)  # fmt: skip
def test_a_signal_during_the_preparation_ends_the_training_with_one_word(
    corpus: Path, tmp_path: Path, phase: str, delay: float, number: signal.Signals, settings: dict[str, Any]
) -> None:
    training = Training(corpus, tmp_path, **settings)
    training.wait_for(training.has_printed(phase))
    time.sleep(delay)
    assert training.stop(number) == [{signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]]
    assert not training.run.exists


# --- updates ---


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_in_an_update_is_answered_at_once_and_the_update_saved(
    corpus: Path, tmp_path: Path, number: signal.Signals
) -> None:
    training = Training(corpus, tmp_path, width=128, layers=2, batch_tokens=9_000)
    training.wait_for(lambda: training.logged("step") == [1])
    printed = training.stop(number)
    (step,) = training.run.checkpoints.steps()
    assert "stopping after this step; press again to abort" in printed
    assert f"stopped and saved at step {step:,}; run the same command again to resume" in printed


def test_a_later_signal_aborts_the_update_and_the_last_checkpoint_is_intact(corpus: Path, tmp_path: Path) -> None:
    training = Training(corpus, tmp_path, width=128, layers=2, batch_tokens=9_000)
    training.wait_for(lambda: training.validated(2))
    os.kill(training.pid, signal.SIGTERM)
    training.wait_for(training.has_printed("stopping"))
    os.kill(training.pid, signal.SIGSTOP)  # keeps the update from ending
    time.sleep(1.1 * _REPEAT)
    os.kill(training.pid, signal.SIGTERM)
    os.kill(training.pid, signal.SIGCONT)
    assert training.end() == 143
    assert training.stderr.endswith("terminated\n")
    assert "Traceback" not in training.stderr
    assert training.run.checkpoints.steps() == [2]
    assert training.run.checkpoints.read(2).step == 2


def test_a_training_that_is_saved_killed_and_stopped_ends_with_the_same_weights(
    corpus: Path, tmp_path: Path
) -> None:
    """SIGUSR1 saves a checkpoint besides the regular ones, and nobody else trains the run at the same time."""
    settings = {"fast": True, "steps": 60, "save_every": 15, "average": 5, "valid_sentences": 4}
    whole = Training(corpus, tmp_path / "whole", **settings)
    assert whole.end() == 0

    training = Training(corpus, tmp_path / "stopped", **settings)
    training.wait_for(lambda: len(training.logged("step")) > 21)
    os.kill(training.pid, signal.SIGUSR1)
    training.wait_for(lambda: any(step % 15 for step in training.run.checkpoints.steps()))
    os.kill(training.pid, signal.SIGSTOP)  # keeps it alive while the second starts
    command = [sys.executable, "-m", "manyheads", *training.command()]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 3
    assert "is being trained by another process" in second.stderr
    training.stop(signal.SIGKILL)

    training.start()
    training.wait_for(lambda: len(training.logged("step")) > 40)
    training.stop(signal.SIGTERM)
    assert max(training.run.checkpoints.steps()) > 40

    training.start()
    assert training.end() == 0
    training.assert_same(whole)


def test_a_training_under_nohup_outlives_its_terminal(corpus: Path, tmp_path: Path) -> None:
    training = Training(corpus, tmp_path, fast=True, steps=60, save_every=15)
    training.wait_for(lambda: training.logged("step") != [])
    training.stop(signal.SIGKILL)
    command = ["nohup", sys.executable, "-m", "manyheads", *training.command()]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:  # a phase of the training begins
            if "step" in line:
                process.send_signal(signal.SIGHUP)
                break
        process.stderr.read()
    assert process.returncode == 0
    assert training.run.described


@pytest.mark.weekly
def test_ten_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    """Use another seed in each run; `python -m tests.system.kills` kills two hundred times."""
    seed = random.SystemRandom().randrange(10**6)
    ended, _ = kill_and_compare(tmp_path, 10, seed)
    assert ended > 0, f"seed {seed}"


# --- saving ---


def test_a_checkpoint_that_is_being_saved_at_a_signal_is_completed(corpus: Path, tmp_path: Path) -> None:
    training = Training(corpus, tmp_path, width=384, layers=4)
    training.wait_for(lambda: any(training.run.checkpoints.folder.glob(".draft-*")))
    printed = training.stop(signal.SIGTERM)
    assert printed[0] in (
        "stopping; the checkpoint of step 2 is being saved",
        "stopping; the checkpoint of step 2 is saved",  # the signal arrived after the last byte
    )
    assert training.run.checkpoints.read(2).state["progress"]["pending"]


# --- validation, and averaging at the end ---


@pytest.mark.weekly
def test_a_validation_and_an_average_that_are_stopped_are_repeated_and_change_nothing(
    corpus: Path, tmp_path: Path
) -> None:
    """Stop the same training in the loss of a validation, in its translations, and in the average."""
    whole = Training(corpus, tmp_path / "whole", fast=True, valid_sentences=20)
    assert whole.end() == 0

    training = Training(corpus, tmp_path / "stopped", valid_sentences=20)
    for phase, number in (("validating: loss", signal.SIGINT), ("validating: translating", signal.SIGTERM)):
        training.wait_for(training.has_printed(phase))
        printed = training.stop(number)
        assert printed[0] == "stopping; the checkpoint of step 2 is saved"
        assert "stopped and saved at step 2; run the same command again to resume" in printed
        assert training.run.checkpoints.steps() == [2]
        assert not training.validated(2)
        assert training.logged("validation") == []
        training.start()

    training.wait_for(lambda: 4 in training.logged("validation"))
    printed = training.stop(signal.SIGTERM)
    assert printed[-1] == "stopped and saved at step 4; run the same command again to resume"
    assert not training.run.described

    training.start()
    assert training.end() == 0
    assert "mean of the last 2 checkpoints" in training.stderr
    assert training.run.described
    training.assert_same(whole)
