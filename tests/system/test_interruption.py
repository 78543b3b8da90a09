"""Ctrl-C, SIGTERM and kill -9: the same line goes on, and ends with the weights of an undisturbed run."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

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
valid_sentences = 4
precision = "fp32"
"""

NUMBERS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}


def command(config: Path, out: Path) -> list[str]:
    """The line that a user types, again and again."""
    return [sys.executable, "-m", "manyheads", "train", str(config), "--out", str(out)]


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
def undisturbed(config: Path) -> Path:
    out = config.parent / "undisturbed"
    subprocess.run(command(config, out), check=True, capture_output=True)
    return out


def start_and_interrupt(config: Path, out: Path, number: signal.Signals, after_step: int) -> int:
    """Start training, send a signal once that step has been logged, and return the exit code."""
    process = subprocess.Popen(command(config, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    metrics = out / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if metrics.is_file() and metrics.read_text(encoding="utf-8").count("\n") >= after_step:
            process.send_signal(number)
            break
        time.sleep(0.01)
    return process.wait(timeout=60)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_the_same_line_goes_on_and_ends_with_the_same_weights(
    number: signal.Signals, config: Path, undisturbed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    assert start_and_interrupt(config, out, number, after_step=22) == NUMBERS[number]
    if number is not signal.SIGKILL:  # saved where it stood, not only where it saves anyway
        steps = [int(path.name.removeprefix("step-")) for path in (out / "checkpoints").glob("step-*")]
        assert max(steps) >= 22
    subprocess.run(command(config, out), check=True, capture_output=True)
    expected, found = load_file(undisturbed / "model.safetensors"), load_file(out / "model.safetensors")
    assert expected.keys() == found.keys()
    for name in expected:
        assert torch.equal(expected[name], found[name]), name
    assert losses(out) == losses(undisturbed)


def losses(run: Path) -> list[tuple[int, float]]:
    """Step and loss of every log point."""
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    return [(record["step"], record["loss"]) for record in records]
