"""The recipe `shakespeare-char` beside a training loop that people write themselves, in turn and in one run.

    python benchmarks/language_model.py --root data/tinyshakespeare

The plain loop is a GPT of the same size in the style of nanoGPT: 4 layers of width 128, 4 heads, blocks of 64
characters, 12 an update, AdamW at 1e-3 with a cosine, no dropout. Both begin with the text file and end with the
loss on its last tenth, and that time is theirs in full: reading, training, validating, saving. Both are judged by
the same function, on blocks side by side (every character once, those at the beginning of a block with little
before them, as nanoGPT does) and over a sliding window (all but the first with half a block before them).
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

import machine
from manyheads.config.load import load_config, recipe_paths
from manyheads.config.schema import Config
from manyheads.runs.train import train
from manyheads.tasks.language_modeling import Generator
from manyheads.training.objective import Windows
from tiny import WORDS, sentences

LAYERS, WIDTH, HEADS, BLOCK, ROWS = 4, 128, 4, 64, 12
RATE, WARM_UP, DECAY = 1e-3, 100, 0.1
SHARE = 0.1  # of the text, at its end, that is held out

Scores = Callable[[Tensor], Tensor]  # ids (B, T) -> logits (B, T, V)


class Block(nn.Module):
    """Attention and feed-forward, each after a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        batch, length, _ = x.shape
        heads = self.project(self.first(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.mix(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(functional.gelu(self.widen(self.second(x))))


class Plain(nn.Module):
    """A GPT with learned positions; the output is the embedding again."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(size, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                last = any(module in (block.mix, block.narrow) for block in self.blocks)
                nn.init.normal_(module.weight, std=0.02 / (math.sqrt(2 * LAYERS) if last else 1))
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, ids: Tensor) -> Tensor:
        """(B, T) -> logits (B, T, V)."""
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        return functional.linear(self.norm(self.blocks(x)), self.tokens.weight)


@dataclass(frozen=True)
class Result:
    """What a side reached.

    Attributes:
        loss: nats a character on blocks side by side.
        sliding: nats a character over a sliding window.
        seconds: from the file to the loss.
        tokens_per_second: characters trained on, over those seconds.
    """

    loss: float
    sliding: float
    seconds: float
    tokens_per_second: float


def plain_loop(text: str, steps: int, seed: int) -> tuple[Scores, NDArray[np.int32]]:
    """Train for so many updates; returns the model and the held-out characters as ids."""
    torch.manual_seed(seed)
    numbers = {symbol: number for number, symbol in enumerate(sorted(set(text)))}
    ids = torch.tensor([numbers[symbol] for symbol in text])
    cut = len(ids) - round(SHARE * len(ids))
    held_in, held_out = ids[:cut], ids[cut:]
    model = Plain(len(numbers))
    matrices, vectors = ([p for p in model.parameters() if (p.ndim > 1) is big] for big in (True, False))
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99), fused=True)
    for step in range(steps):
        fraction = min(1.0, max(0.0, (step - WARM_UP) / max(1, steps - WARM_UP)))
        rate = RATE * min(1.0, (step + 1) / WARM_UP) * (0.1 + 0.9 * (1 + math.cos(math.pi * fraction)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        starts = torch.randint(len(held_in) - BLOCK, (ROWS,))
        places = starts[:, None] + torch.arange(BLOCK)
        logits = model(held_in[places])
        loss = functional.cross_entropy(logits.flatten(0, 1), held_in[places + 1].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval(), held_out.numpy().astype(np.int32)


def manyheads_run(config: Config, text: str) -> tuple[Scores, NDArray[np.int32]]:
    """Train the recipe; returns the model and the held-out characters as ids."""
    with tempfile.TemporaryDirectory() as folder:
        train(config, Path(folder) / "run")
        generator = Generator.load(Path(folder) / "run", device="cpu")
    held_out = text[len(text) - round(SHARE * len(text)) :]
    return generator.model, np.asarray(generator.tokenizer.encode([held_out])[0], np.int32)


@torch.inference_mode()
def mean_loss(scores: Scores, tokens: NDArray[np.int32], step: int) -> float:
    """Nats a token: of blocks side by side when a window moves on by a block, else of a sliding window."""
    windows = Windows(len(tokens), width=BLOCK, step=step)
    total = 0.0
    for first in range(0, len(windows), 64):
        batch, places = windows.batch(tokens, windows[first : first + 64])
        logits, right = scores(batch.ids).flatten(0, 1)[places], batch.labels.flatten()[places]
        total += float(functional.cross_entropy(logits.float(), right, reduction="sum"))
    return total / windows.predicted


def measured(side: Callable[[], tuple[Scores, NDArray[np.int32]]], steps: int) -> Result:
    """Run a side, which makes so many updates, and look at the clock."""
    start = time.perf_counter()
    scores, held_out = side()
    loss = mean_loss(scores, held_out, BLOCK)
    seconds = time.perf_counter() - start
    return Result(loss, mean_loss(scores, held_out, BLOCK // 2), seconds, steps * BLOCK * ROWS / seconds)


def read_text(root: Path) -> str:
    """The text of `input.txt`, plain or compressed."""
    path = root / "input.txt"
    raw = path.read_bytes() if path.is_file() else gzip.decompress((root / "input.txt.gz").read_bytes())
    return raw.decode()


def write_tiny(root: Path) -> None:
    """Write some hundred made-up lines as `input.txt`."""
    lines = (" ".join(WORDS["en"][place] for place in row) for row in sentences(400, 0))
    (root / "input.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> None:
    """Both sides in turn, and their medians."""
    parser = machine.parser(__doc__)
    parser.add_argument("--root", type=Path, help="folder with input.txt or input.txt.gz")
    parser.add_argument("--steps", type=int, default=2_000, help="updates of the plain loop (default 2000)")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="override a setting of manyheads")
    tiny = {"steps": 3, "set": ["training.steps=3", "training.save_every=3"]}
    arguments = machine.parse(parser, tiny=tiny, required=["root"])
    with tempfile.TemporaryDirectory() as folder:
        root = arguments.root
        if root is None:
            root = Path(folder)
            write_tiny(root)
        rows = measure_both(root, arguments)
    about = machine.about()
    if arguments.json:
        print(
            json.dumps({"unit": "nats a character, seconds", **about, "repeats": arguments.repeats, "rows": rows})
        )
        return
    print(machine.describe(about))
    for name, row in rows.items():
        print(
            f"{name:11} loss {row['loss']:.4f} (sliding window {row['sliding']:.4f})  {row['seconds']:6.1f} s  "
            f"{row['tokens_per_second']:,.0f} tokens/s"
        )


def measure_both(root: Path, arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Medians of both sides, in turn."""
    text = read_text(root)
    changes = [f"data.root={root}", "training.device=cpu"]
    config = load_config(recipe_paths()["shakespeare-char"], [*changes, *arguments.set])
    plain_loop(text, 3, 0)  # warm: what torch loads once is nobody's
    found: dict[str, list[Result]] = {"plain loop": [], "manyheads": []}
    for seed in range(1, arguments.repeats + 1):
        training = config.training.model_copy(update={"seed": seed})
        ours = config.model_copy(update={"training": training})
        found["plain loop"].append(measured(partial(plain_loop, text, arguments.steps, seed), arguments.steps))
        found["manyheads"].append(measured(partial(manyheads_run, ours, text), training.steps))
    return {
        name: {key: statistics.median(getattr(one, key) for one in results) for key in asdict(results[0])}
        for name, results in found.items()
    }


if __name__ == "__main__":
    main()
