"""The whole program learns to reverse strings: tokenizer, training, search and evaluation."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

LETTERS = "abcdefghijklm"

CONFIG = """
[data]
root = "{root}"
source = "aa"
target = "bb"
test = "test"
[tokenizer]
kind = "characters"
[model]
d_model = 64
d_ff = 128
num_heads = 2
num_encoder_layers = 2
num_decoder_layers = 2
dropout = 0.0
norm = "{norm}"
positions = "{positions}"
[training]
steps = 450
batch_tokens = 1_800
learning_rate = 5e-3
schedule = "linear"
warmup_steps = 50
label_smoothing = 0.0
save_every = 150
valid_sentences = 50
seed = {seed}
[search]
beam_size = 3
"""


def write_strings(folder: Path, generator: random.Random) -> None:
    """Write three splits of distinct strings of 2 to 9 letters, and their reverses."""
    strings: set[str] = set()
    while len(strings) < 6_400:
        strings.add("".join(generator.choices(LETTERS, k=generator.randint(2, 9))))
    ordered = sorted(strings)
    generator.shuffle(ordered)
    for split, part in (("valid", ordered[:200]), ("test", ordered[200:400]), ("train", ordered[400:])):
        (folder / f"{split}.aa").write_text("".join(f"{word}\n" for word in part))
        (folder / f"{split}.bb").write_text("".join(f"{word[::-1]}\n" for word in part))


def manyheads(*arguments: str) -> str:
    """Run the program in a new process, and return its output."""
    command = [sys.executable, "-m", "manyheads", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
@pytest.mark.weekly
def test_a_model_learns_to_reverse_strings_from_any_seed(tmp_path: Path, training_seed: int) -> None:
    generator = random.Random(training_seed)
    write_strings(tmp_path, generator)
    norm, positions = generator.choice(["pre", "post"]), generator.choice(["sinusoidal", "learned", "rotary"])
    config = tmp_path / "reverse.toml"
    config.write_text(CONFIG.format(root=tmp_path.as_posix(), seed=training_seed, norm=norm, positions=positions))
    run = str(tmp_path / "run")
    manyheads("train", str(config), "-o", run, "--quiet")
    result = json.loads(manyheads("evaluate", run, "--json"))
    assert result["sentences"] == 200
    assert result["exact"] >= 0.95, f"seed {training_seed}, {norm}-norm, {positions}: {result}"
