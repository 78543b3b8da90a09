"""After Ctrl-C, SIGTERM or kill -9, the same command resumes and ends with the weights of an uninterrupted run."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.system.kills import kill_and_compare

CONFIG = """
[data]
root = "{root}"
source = "aa"
target = "bb"
[tokenizer]
kind = "characters"
[model]
d_model = 32
d_ff = 64
num_heads = 2
num_encoder_layers = 1
num_decoder_layers = 1
[training]
steps = 120
batch_tokens = 600
warmup_steps = 20
log_every = 1
save_every = 15
average_checkpoints = 3
valid_sentences = 4
precision = "fp32"
"""

# tests/runs/test_train.py tests a kill at every write in one process, and tests/runs/test_signals.py signals.
pytestmark = pytest.mark.slow

TIMEOUT = 300  # seconds
EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}


def command(config: Path, out: Path) -> list[str]:
    """Return the command that starts and resumes a training."""
    return [sys.executable, "-m", "manyheads", "train", str(config), "-o", str(out)]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    generator = random.Random(2)
    for split, count in (("train", 900), ("valid", 20)):
        lines = ["".join(generator.choices("abcdefg", k=generator.randint(2, 9))) for _ in range(count)]
        (folder / f"{split}.aa").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{split}.bb").write_text("".join(f"{line[::-1]}\n" for line in lines))
    path = folder / "config.toml"
    path.write_text(CONFIG.format(root=folder.as_posix()))
    return path


@pytest.fixture(scope="module")
def uninterrupted(config: Path) -> Path:
    out = config.parent / "undisturbed"
    subprocess.run(command(config, out), check=True, capture_output=True)
    return out


def start_and_interrupt(config: Path, out: Path, number: signal.Signals, after_step: int) -> int:
    """Start training, send a signal once that step has been logged, and return the exit code.

    On a busy machine training may end before the signal arrives; then it is repeated.
    """
    for _ in range(10):
        shutil.rmtree(out, ignore_errors=True)
        process = subprocess.Popen(command(config, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and logged(out) < after_step:
            time.sleep(0.005)
        process.send_signal(number)
        if process.wait(TIMEOUT):
            break
    return process.returncode


@pytest.mark.parametrize(
    ("number", "after_step"),
    [
        (signal.SIGKILL, 22),
        (signal.SIGINT, 22),
        (signal.SIGTERM, 22),
        (signal.SIGTERM, 107),
    ],
    ids=str,
)
def test_the_same_command_resumes_and_ends_with_the_same_weights(
    number: signal.Signals, after_step: int, config: Path, uninterrupted: Path, tmp_path: Path
) -> None:
    """Include a checkpoint between those that are averaged, which changes nothing."""
    out = tmp_path / "run"
    assert start_and_interrupt(config, out, number, after_step) == EXIT_CODES[number]
    if number is not signal.SIGKILL:  # saved at the signal, besides the regular checkpoints
        assert max(checkpoints(out)) >= after_step
    subprocess.run(command(config, out), check=True, capture_output=True)
    assert_same(out, uninterrupted)


def test_sigusr1_saves_a_checkpoint_and_training_continues(
    config: Path, uninterrupted: Path, tmp_path: Path
) -> None:
    out, seen = tmp_path / "run", set[int]()
    for _ in range(10):  # on a busy machine training may end before the signal arrives
        shutil.rmtree(out, ignore_errors=True)
        process = subprocess.Popen(command(config, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            if logged(out) >= 22 and not seen:
                process.send_signal(signal.SIGUSR1)
            seen |= {step for step in checkpoints(out) if step % 15 and step < 120}
            time.sleep(0.005)
        assert process.returncode == 0
        if seen:
            break
    assert seen, "a checkpoint at another step than the regular ones"
    assert_same(out, uninterrupted)


def test_another_trainer_in_the_same_directory_is_refused(
    config: Path, uninterrupted: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    first = subprocess.Popen(command(config, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (out / "metrics.jsonl").is_file():
        time.sleep(0.005)
    first.send_signal(signal.SIGSTOP)  # keeps it alive while the second starts
    second = subprocess.run(command(config, out), capture_output=True, text=True, check=False)
    first.send_signal(signal.SIGCONT)
    assert first.wait() == 0
    assert second.returncode == 3
    assert "is being trained by another process" in second.stderr
    assert_same(out, uninterrupted)


def checkpoints(run: Path) -> list[int]:
    """Return the steps that have a checkpoint."""
    return [int(path.name.removeprefix("step-")) for path in (run / "checkpoints").glob("step-*")]


def logged(run: Path) -> int:
    """Return the number of logged updates."""
    metrics = run / "metrics.jsonl"
    return metrics.read_text(encoding="utf-8").count('"kind": "step"') if metrics.is_file() else 0


def assert_same(run: Path, other: Path) -> None:
    """Compare weights and losses bit for bit."""
    expected, found = load_file(other / "model.safetensors"), load_file(run / "model.safetensors")
    assert expected.keys() == found.keys()
    for name in expected:
        assert torch.equal(expected[name], found[name]), name
    assert losses(run) == losses(other)


def losses(run: Path) -> list[tuple[int, float]]:
    """Return step and loss of every log record."""
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    return [(record["step"], record["loss"]) for record in records]


def test_ten_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    """Use another seed in each run; `python -m tests.system.kills` kills two hundred times."""
    seed = random.SystemRandom().randrange(10**6)
    ended, _ = kill_and_compare(tmp_path, 10, seed)
    assert ended > 0, f"seed {seed}"
