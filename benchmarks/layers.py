"""Compare three parts of manyheads with torch's own on a CPU: dropout, attention, keeping freed memory.

    python benchmarks/layers.py [--threads 2] [--isa avx2|avx512] [--json]

Each row is a forward and backward pass at the sizes of a 4096-token batch of width 256, in sentences of 16 tokens;
both sides in turn, median and range of the repeats, in milliseconds. The allocator cannot be set back once it keeps
freed memory, so torch's side of `relu` is measured before all others.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

import torch
from torch.nn import functional

import machine
from manyheads.allocator import keep_freed_memory
from manyheads.model.attention import attention_weights
from manyheads.model.dropout import Dropout

TOKENS, WIDTH, INNER, LENGTH, HEADS = 4_096, 256, 1_024, 16, 4


def milliseconds(run: Callable[[], object]) -> float:
    """Return the milliseconds of one call."""
    start = time.perf_counter()
    run()
    return 1_000 * (time.perf_counter() - start)


def time_in_turn(sides: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Time the sides one after the other in every repeat; leave out two repeats of warm-up."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(repeats + 2):
        for name, run in sides.items():
            elapsed = milliseconds(run)
            if repeat >= 2:
                times[name].append(elapsed)
    return times


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


def relu(repeats: int) -> list[float]:
    """Time a relu whose result is freed again, as in a training step."""
    x = torch.randn(TOKENS, INNER, requires_grad=True)
    gradient = torch.randn(TOKENS, INNER)
    return time_in_turn({"relu": lambda: functional.relu(x).backward(gradient)}, repeats)["relu"]


def summary(times: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(times), 3), "min": round(min(times), 3), "max": round(max(times), 3)}


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = machine.parse(parser, tiny={"repeats": 1, "threads": 1})
    torch.set_num_threads(arguments.threads)
    torch_times = relu(arguments.repeats)
    keep_freed_memory()  # as in training
    rows = {"relu float32": {"ours": summary(relu(arguments.repeats)), "torch": summary(torch_times)}}
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        for part, sides in (("dropout", dropout_sides(dtype)), ("attention", attention_sides(dtype))):
            times = time_in_turn(sides, arguments.repeats)
            rows[f"{part} {name}"] = {side: summary(side_times) for side, side_times in times.items()}
    about = machine.about()
    if arguments.json:
        print(json.dumps({"unit": "ms", **about, "rows": rows}))
        return
    print(machine.describe(about))
    for name, sides in rows.items():
        our_median, torch_median = sides["ours"]["median"], sides["torch"]["median"]
        print(
            f"{name:20} ours {our_median:8.2f} ms   torch {torch_median:8.2f} ms   {torch_median / our_median:.1f}x"
        )


if __name__ == "__main__":
    main()
