"""The choice of how a model decodes: by compiled code where that is the faster way on this machine, else by torch.

Shapes: R rows that take a step together.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from manyheads.config.schema import ModelConfig
from manyheads.errors import UsageError
from manyheads.model.compiled import CompiledModel
from manyheads.model.decoding import EncoderDecoderStepper
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.packed import PackedModel
from manyheads.model.products import Precision
from manyheads.native.build import SWITCH, library, load_measurement, measurement_path, store_measurement

__all__ = ["PRECISIONS", "NativeSpeed", "is_used", "native_speed", "pack", "pick_format"]

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
ROWS = (1, 5, 320)  # a line, its beam, and 64 lines with theirs
SOURCE_LENGTH, VOCABULARY = 16, 8_000
STEPS = 4  # in a row: threads of the other way may be awake during the first
SECONDS = 2.0  # that a measurement takes at most, once each way has been tried twice


@dataclass(frozen=True)
class NativeSpeed:
    """How fast the compiled code of a library is beside torch.

    Attributes:
        threads: that both had.
        native, torch: shortest time of a step of so many rows, in seconds.
    """

    threads: int
    native: Mapping[int, float]
    torch: Mapping[int, float]

    @property
    def ratios(self) -> dict[int, float]:
        """Speed of the compiled code over that of torch, for each number of rows."""
        return {rows: self.torch[rows] / self.native[rows] for rows in self.native}

    @property
    def faster(self) -> bool:
        """Whether the compiled code is the faster one, in the geometric mean."""
        return math.prod(self.ratios.values()) >= 1


def pick_format(precision: str) -> Precision:
    """Return a precision by its name; raises `UsageError`."""
    for one in PRECISIONS:
        if one == precision:
            return one
    raise UsageError(f'there is no precision "{precision}". Use one of {", ".join(PRECISIONS)}.')


def pack(model: EncoderDecoder, precision: Precision = "fp32") -> PackedModel:
    """Arrange the weights of a model for fast decoding on its device.

    Args:
        model: on the device where it will be.
        precision: "fp32" computes what the model computes. On a CPU "bf16" rounds the matrices to 8 significant
            bits, "int8" to 8 bits with a scale for each output, and all between them stays float32, on every
            processor. On another device "bf16" computes in bfloat16.

    Raises:
        UsageError: "int8" on another device than a CPU.
    """
    weight = model.output.weight
    if weight.device.type == "cpu":
        return PackedModel(model, rounding=precision, code=native_model(model, precision))
    if precision == "int8":
        raise UsageError(f'precision "int8" is for a CPU, not for {weight.device.type}. Use "bf16".')
    return PackedModel(model, torch.bfloat16 if precision == "bf16" else None)


def native_model(model: EncoderDecoder, precision: Precision) -> CompiledModel | None:
    """Return a model for compiled code; None in another dtype than float32, and where there is no code to use."""
    if model.output.weight.dtype != torch.float32 or (code := library()) is None or not is_used(code):
        return None
    return CompiledModel(model, precision, code)


def is_used(code: ctypes.CDLL) -> bool:
    """Whether a library is used: it was measured to be faster than torch, or `MANYHEADS_NATIVE=1` asks for it."""
    return os.environ.get(SWITCH) == "1" or (speed := native_speed(code)) is None or speed.faster


def native_speed(code: ctypes.CDLL) -> NativeSpeed | None:
    """Return the speed of a library beside torch, measured once and kept beside it.

    A library outside the cache is not measured: None. It is gone with the process, and so would be the result.
    """
    path = measurement_path(code)
    return None if path is None else kept_speed(path, code)


@functools.cache
def kept_speed(path: Path, code: ctypes.CDLL) -> NativeSpeed:
    """Read a measurement, or make and keep it."""
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        kept = load_measurement(path)
        native, by_torch = (
            {int(rows): float(kept[way][rows]) for rows in kept[way]} for way in ("native", "torch")
        )
        return NativeSpeed(int(kept["threads"]), native, by_torch)
    speed = measure(code)
    store_measurement(path, asdict(speed))
    return speed


def measure(code: ctypes.CDLL) -> NativeSpeed:
    """Time decoding steps of a small random model, by a library and by torch in turn."""
    config = ModelConfig(d_model=256, d_ff=1024, num_heads=4, num_encoder_layers=1, num_decoder_layers=3)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        model = EncoderDecoder(config, VOCABULARY, VOCABULARY).eval()
        ways = {"native": PackedModel(model, code=CompiledModel(model, "fp32", code)), "torch": PackedModel(model)}
        source = torch.randint(5, VOCABULARY, (max(ROWS), SOURCE_LENGTH))
        shortest = {way: dict.fromkeys(ROWS, math.inf) for way in ways}
        begun, rounds = time.perf_counter(), 0
        while rounds < 2 or time.perf_counter() - begun < SECONDS:
            rounds += 1
            for rows in ROWS:
                for way, packed in ways.items():
                    seconds = step_seconds(packed, source[:rows])
                    shortest[way][rows] = min(shortest[way][rows], seconds)
    return NativeSpeed(torch.get_num_threads(), shortest["native"], shortest["torch"])


def step_seconds(model: PackedModel, source: Tensor) -> float:
    """Return the shortest time of a few steps: (R, S) -> seconds."""
    stepper, tokens = EncoderDecoderStepper(model, source), source[:, 0].contiguous()
    shortest = math.inf
    for _ in range(STEPS):
        begun = time.perf_counter()
        stepper.step(tokens)
        shortest = min(shortest, time.perf_counter() - begun)
    return shortest
