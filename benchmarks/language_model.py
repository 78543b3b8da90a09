"""Compare the recipe `shakespeare-char` with a plain training loop, in turn in one run.

    python benchmarks/language_model.py --root data/tinyshakespeare

The plain loop is a GPT of the same size in the style of nanoGPT: 4 layers of width 128, 4 heads, blocks of 64
characters, 12 an update, AdamW at 1e-3 with a cosine, no dropout. Both begin with the text file and end with the
loss on its last tenth; the measured time is all of it: reading, training, validating, saving. Both are scored by
the same function, on blocks side by side (every character once, those at the beginning of a block with little
context, as nanoGPT does) and over a sliding window (all but the first with at least half a block of context).
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from bitext.file_names import existing
from bitext.lines import read_lines
from harness import Document, main, option, settings
from manyheads.inference.generator import Generator
from manyheads.training.objective import Windows
from material import WORDS, sentences, train_recipe, write

LAYERS, WIDTH, HEADS, BLOCK, ROWS = 4, 128, 4, 64, 12
RATE, WARM_UP, DECAY = 1e-3, 100, 0.1
HELD_OUT_SHARE = 0.1  # of the text is held out, at its end

LogitsFunction = Callable[[Tensor], Tensor]  # ids (B, T) -> logits (B, T, V)
Trained = tuple[LogitsFunction, NDArray[np.int32], int]  # the model, the held-out characters as ids, the updates


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.attention_out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.expand, self.contract = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Apply attention and feed-forward: (B, T, D) -> (B, T, D)."""
        batch, length, _ = x.shape
        heads = (
            self.qkv(self.attention_norm(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        )
        attended = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.attention_out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.contract(functional.gelu(self.expand(self.feed_forward_norm(x))))


class PlainGPT(nn.Module):
    """A GPT with learned positions; output and embedding are tied."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(size, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                is_residual_output = any(module in (block.attention_out, block.contract) for block in self.blocks)
                nn.init.normal_(module.weight, std=0.02 / (math.sqrt(2 * LAYERS) if is_residual_output else 1))
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the logits of the next characters: (B, T) -> (B, T, V)."""
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        return functional.linear(self.norm(self.blocks(x)), self.tokens.weight)


def plain_loop(text: str, steps: int, seed: int) -> Trained:
    torch.manual_seed(seed)
    ids_of_symbols = {symbol: i for i, symbol in enumerate(sorted(set(text)))}
    ids = torch.tensor([ids_of_symbols[symbol] for symbol in text])
    cut = len(ids) - round(HELD_OUT_SHARE * len(ids))
    train_ids, held_out = ids[:cut], ids[cut:]
    model = PlainGPT(len(ids_of_symbols))
    matrices, vectors = (
        [parameter for parameter in model.parameters() if (parameter.ndim > 1) is is_matrix]
        for is_matrix in (True, False)
    )
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99), fused=True)
    for step in range(steps):
        fraction = min(1.0, max(0.0, (step - WARM_UP) / max(1, steps - WARM_UP)))
        rate = RATE * min(1.0, (step + 1) / WARM_UP) * (0.1 + 0.9 * (1 + math.cos(math.pi * fraction)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        starts = torch.randint(len(train_ids) - BLOCK, (ROWS,))
        positions = starts[:, None] + torch.arange(BLOCK)
        logits = model(train_ids[positions])
        loss = functional.cross_entropy(logits.flatten(0, 1), train_ids[positions + 1].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval(), held_out.numpy().astype(np.int32), steps


def manyheads_run(text: str, settings: Sequence[str], run: Path) -> Trained:
    trained = train_recipe("shakespeare-char", settings, run)
    generator = Generator.load(run, device="cpu")
    model = generator.model  # loaded at the first use
    held_out = text[len(text) - round(HELD_OUT_SHARE * len(text)) :]
    return model, np.asarray(generator.tokenizer.encode([held_out])[0], np.int32), trained.step


@torch.inference_mode()
def mean_loss(model: LogitsFunction, tokens: NDArray[np.int32], step: int) -> float:
    """Return the nats a token over windows that advance by `step`: a block for blocks side by side."""
    windows = Windows(len(tokens), width=BLOCK, step=step)
    total = 0.0
    for begin in range(0, len(windows), 64):
        batch, positions = windows.batch(tokens, windows[begin : begin + 64])
        logits, labels = model(batch.ids).flatten(0, 1)[positions], batch.labels.flatten()[positions]
        total += float(functional.cross_entropy(logits.float(), labels, reduction="sum"))
    return total / windows.predicted


def measure_side(side: Callable[[], Trained]) -> dict[str, float]:
    """Time a side, which trains, and return its figures."""
    start = time.perf_counter()
    model, held_out, steps = side()
    loss = mean_loss(model, held_out, BLOCK)
    seconds = time.perf_counter() - start
    return {
        "loss": loss,  # nats a character on blocks side by side
        "sliding": mean_loss(model, held_out, BLOCK // 2),  # over a sliding window
        "seconds": seconds,  # from the file to the loss
        "tokens_per_second": steps * BLOCK * ROWS / seconds,
    }


def write_tiny(root: Path) -> Path:
    """Write 400 made-up lines as `input.txt`."""
    write(root / "input.txt", (" ".join(WORDS["en"][index] for index in row) for row in sentences(400, 0)))
    return root


def measure(arguments: argparse.Namespace) -> Document:
    text = "".join(f"{line}\n" for line in read_lines(existing(arguments.root / "input.txt")))
    overrides = [f"data.root={arguments.root}", "training.device=cpu", *arguments.overrides]
    plain_loop(text, 3, 0)  # warm-up: what torch loads once is not timed
    results: dict[str, list[dict[str, float]]] = {"plain loop": [], "manyheads": []}
    for seed in range(1, arguments.repeats + 1):
        run, own = arguments.folder / f"run {seed}", [*overrides, f"training.seed={seed}"]
        results["plain loop"].append(measure_side(partial(plain_loop, text, arguments.steps, seed)))
        results["manyheads"].append(measure_side(partial(manyheads_run, text, own, run)))
    return {
        "repeats": arguments.repeats,
        "rows": {
            name: {key: statistics.median(result[key] for result in own) for key in own[0]}
            for name, own in results.items()
        },
    }


OPTIONS = {
    "--root": option(Path, "folder with input.txt or input.txt.gz", tiny=write_tiny, required=True),
    "--steps": option(2_000, "updates of the plain loop", tiny=3),
    "--repeats": option(1, "trainings of each side, with seeds from 1 on"),
    "--set": settings(["training.steps=3", "training.save_every=3"]),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="nats a character, seconds")
