"""Compare three parts of manyheads with torch's own on a CPU: dropout, attention, keeping freed memory.

    python benchmarks/layers.py [--threads 2] [--isa avx2|avx512] [--json]

Each row is a forward and backward pass at the sizes of a 4096-token batch of width 256, in sentences of 16 tokens;
both sides in turn, median and range of the repeats, in milliseconds. The allocator cannot be set back once it keeps
freed memory, so torch's side of `relu` is measured before all others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch.nn import functional

from harness import Document, in_turn, main, option, spread
from manyheads.allocator import keep_freed_memory
from manyheads.model.attention import attention_weights
from manyheads.model.dropout import Dropout

TOKENS, WIDTH, INNER, LENGTH, HEADS = 4_096, 256, 1_024, 16, 4


def times(sides: dict[str, Callable[[], object]], repeats: int) -> dict[str, dict[str, float]]:
    """Time the sides in turn, after two repeats of warm-up; return the milliseconds of each."""
    seconds = in_turn(sides, repeats, warm_up=2)
    return {name: spread([1_000 * value for value in values]) for name, values in seconds.items()}


def dropout_sides(dtype: torch.dtype) -> dict[str, Callable[[], object]]:
    x = torch.randn(TOKENS, WIDTH, dtype=dtype, requires_grad=True)
    gradient = torch.randn(TOKENS, WIDTH, dtype=dtype)
    ours = Dropout(0.1)
    return {
        "ours": lambda: ours(x).backward(gradient),
        "torch": lambda: functional.dropout(x, 0.1, training=True).backward(gradient),
    }


def attention_sides(dtype: torch.dtype) -> dict[str, Callable[[], object]]:
    shape = (TOKENS // LENGTH, HEADS, LENGTH, WIDTH // HEADS)
    query, key, value = (torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3))
    gradient = torch.randn(shape, dtype=dtype)
    mask = torch.ones(shape[0], 1, 1, LENGTH, dtype=torch.bool)
    return {
        "ours": lambda: (attention_weights(query, key, mask) @ value).backward(gradient),
        "torch": lambda: functional.scaled_dot_product_attention(query, key, value, attn_mask=mask).backward(
            gradient
        ),
    }


def relu(repeats: int) -> dict[str, float]:
    """Time a relu whose result is freed again, as in a training step."""
    x = torch.randn(TOKENS, INNER, requires_grad=True)
    gradient = torch.randn(TOKENS, INNER)
    return times({"relu": lambda: functional.relu(x).backward(gradient)}, repeats)["relu"]


def measure(arguments: argparse.Namespace) -> Document:
    """Time all parts; "times as fast" compares the medians."""
    torch.set_num_threads(arguments.threads)
    torch_relu = relu(arguments.repeats)
    keep_freed_memory()  # as in training
    rows = {"relu float32": {"ours": relu(arguments.repeats), "torch": torch_relu}}
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        for part, sides in (("dropout", dropout_sides(dtype)), ("attention", attention_sides(dtype))):
            rows[f"{part} {name}"] = times(sides, arguments.repeats)
    faster = {name: round(sides["torch"]["median"] / sides["ours"]["median"], 2) for name, sides in rows.items()}
    return {"rows": rows, "times as fast": faster}


OPTIONS = {"--threads": option(2, "threads", tiny=1), "--repeats": option(15, "measurements of each side", tiny=1)}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="ms")
