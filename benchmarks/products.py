"""The products of a decoding step, by each way that a CPU has: all weights of a decoder, one after the other.

    python benchmarks/products.py [--rows 1 2 5 64 320] [--threads 1 2] [--json]

The weights are those of three decoder layers of width 256 and feed-forward 1,024 and of an output over 8,000
tokens, all different, so that each product reads its weights from where a step does. Ways are measured in turn; a
figure is milliseconds for all of the products, median of the rounds.

    mkl-fp32        torch.nn.functional.linear, fp32
    onednn-fp32     manyheads' OneDnnProduct: weights reordered beforehand
    torch-bf16      torch.nn.functional.linear, bf16
    onednn-bf16     OneDnnProduct, bf16
    weights-int8    torch._weight_int8pack_mm: weights of 8 bits, inputs in bf16
    int8            manyheads' Int8Product, which is one of the last two
    rows-int8       inputs rounded as well, a scale a row: oneDNN's uint8 x int8 product and what goes around it
    dynamic-int8    torch.ops.quantized.linear_dynamic: one scale for all rows, so that they depend on each other
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from manyheads.model.products import Int8Product, OneDnnProduct, PlainProduct

Way = Callable[[Tensor], Tensor]
LAYER = [(768, 256), (256, 256), (256, 256), (256, 256), (1024, 256), (256, 1024)]
SHAPES = [*LAYER, *LAYER, *LAYER, (8000, 256)]
ROUNDS = 7


class WeightsInt8:
    """Weights of 8 bits for any number of rows."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.product = Int8Product(weight, bias, torch.bfloat16)

    def __call__(self, x: Tensor) -> Tensor:
        one = self.product
        assert one.bias is not None
        return torch._weight_int8pack_mm(x, one.weight, one.scale).add_(one.bias)


class RowsInt8:
    """Inputs of 8 bits with a scale a row, weights with a scale an output."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.bias = bias
        self.scale = weight.abs().amax(1) / 127
        whole = (weight / self.scale[:, None]).round().to(torch.int8)
        self.packed = torch.ops.onednn.qlinear_prepack(whole, [64, weight.size(1)])
        self.zeros = torch.zeros(len(bias), dtype=torch.int32)

    def __call__(self, x: Tensor) -> Tensor:
        largest = x.abs().amax(1, True).clamp_min_(1e-9).mul_(1 / 127)
        rounded = (x / largest).add_(128.5).to(torch.uint8)
        found = torch.ops.onednn.qlinear_pointwise(
            rounded, 1.0, 128, self.packed, self.scale, self.zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return torch.addcmul(self.bias, found, largest)


def dynamic_int8(weight: Tensor, bias: Tensor) -> Way:
    """Torch's dynamic quantisation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its making of quantised tensors is on its way out
        scale, zeros = weight.abs().amax(1) / 127, torch.zeros(len(bias), dtype=torch.int32)
        rounded = torch.quantize_per_channel(weight, scale, zeros, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(rounded, bias)
    return lambda x: torch.ops.quantized.linear_dynamic(x, packed, False)


WAYS: dict[str, tuple[Callable[[Tensor, Tensor], Way], torch.dtype]] = {
    "mkl-fp32": (lambda weight, bias: PlainProduct(weight, bias, torch.float32), torch.float32),
    "onednn-fp32": (lambda weight, bias: OneDnnProduct(weight, bias, torch.float32), torch.float32),
    "torch-bf16": (lambda weight, bias: PlainProduct(weight, bias, torch.bfloat16), torch.bfloat16),
    "onednn-bf16": (lambda weight, bias: OneDnnProduct(weight, bias, torch.bfloat16), torch.bfloat16),
    "weights-int8": (WeightsInt8, torch.bfloat16),
    "int8": (lambda weight, bias: Int8Product(weight, bias, torch.bfloat16), torch.bfloat16),
    "rows-int8": (RowsInt8, torch.float32),
    "dynamic-int8": (dynamic_int8, torch.float32),
}


def milliseconds(products: list[Way], inputs: dict[int, Tensor]) -> float:
    """One pass through all products, mean of as many as take about 30 ms."""
    start = time.perf_counter()
    passes = 0
    while passes == 0 or time.perf_counter() - start < 0.03:
        for (_, width), product in zip(SHAPES, products, strict=True):
            product(inputs[width])
        passes += 1
    return (time.perf_counter() - start) / passes * 1e3


def measured(rows: int) -> dict[str, float]:
    """The median of each way."""
    x = {width: torch.randn(rows, width) for width in (256, 1024)}
    weights = [(torch.randn(shape) / 16, torch.randn(shape[0])) for shape in SHAPES]
    ways = {
        name: ([make(*pair) for pair in weights], {width: part.to(dtype) for width, part in x.items()})
        for name, (make, dtype) in WAYS.items()
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS + 1):
        for name, (products, inputs) in ways.items():
            found[name].append(milliseconds(products, inputs))
    return {name: round(statistics.median(turns[1:]), 3) for name, turns in found.items()}


def table(rows: list[int], threads: list[int]) -> Iterator[dict[str, float]]:
    """A line for each number of threads and rows."""
    for number in threads:
        torch.set_num_threads(number)
        for count in rows:
            with torch.inference_mode():
                yield {"threads": number, "rows": count, **measured(count)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 2, 5, 64, 320])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = []
    for line in table(arguments.rows, arguments.threads):
        found.append(line)
        if not arguments.json:
            print("   ".join(f"{name} {value}" for name, value in line.items()), flush=True)
    if arguments.json:
        versions = {"torch": torch.__version__, "python": platform.python_version()}
        print(json.dumps({"unit": "ms", "device": platform.machine(), "versions": versions, "rows": found}))


if __name__ == "__main__":
    main()
