"""The choice of the decoding path: native code where it measures faster on this machine, else torch.

Shapes: R rows of a step, S source length.
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
from manyheads.decoding.linear import Precision
from manyheads.decoding.model import InferenceModel
from manyheads.decoding.native.build import SWITCH, library, load_measurement, measurement_path, store_measurement
from manyheads.decoding.native.model import NativeModel
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.errors import UsageError
from manyheads.model.encoder_decoder import EncoderDecoder

__all__ = ["PRECISIONS", "NativeSpeed", "is_used", "native_speed", "pack", "parse_precision"]

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
ROW_COUNTS = (1, 5, 320)  # rows of a measured step: one line, its beam of 5, and 64 lines with a beam of 5
SOURCE_LENGTH, VOCAB_SIZE = 16, 8_000
STEPS_A_ROUND = 4  # consecutive steps; in the first, threads of the other path may still be spinning
MAX_MEASUREMENT_SECONDS = 2.0  # of a measurement, after at least two rounds


@dataclass(frozen=True)
class NativeSpeed:
    """Measured time of decoding steps in native code and in torch.

    Attributes:
        threads: number of threads of both.
        native: for each number of rows the shortest time of a step in native code, in seconds.
        torch: for each number of rows the shortest time of a step in torch, in seconds.
    """

    threads: int
    native: Mapping[int, float]
    torch: Mapping[int, float]

    @property
    def ratios(self) -> dict[int, float]:
        """Speed of native code divided by that of torch, for each number of rows."""
        return {rows: self.torch[rows] / self.native[rows] for rows in self.native}

    @property
    def faster(self) -> bool:
        """Whether native code is at least as fast as torch, by the geometric mean of the ratios."""
        return math.prod(self.ratios.values()) >= 1


def parse_precision(precision: str) -> Precision:
    """Return the precision of a name; raise `UsageError` if there is none."""
    for known in PRECISIONS:
        if known == precision:
            return known
    raise UsageError(f'there is no precision "{precision}". Use one of {", ".join(PRECISIONS)}.')


def pack(model: EncoderDecoder, precision: Precision = "fp32") -> InferenceModel:
    """Pack the weights of a model for fast decoding on its device.

    Args:
        model: on the device that decodes.
        precision: "fp32" computes what the model computes. On a CPU "bf16" rounds the matrices to 8 significant
            bits, "int8" to 8 bits with a scale for each output; activations stay float32 on every processor. On
            another device "bf16" computes in bfloat16.

    Raises:
        UsageError: "int8" on another device than a CPU.
    """
    weight = model.output.weight
    if weight.device.type == "cpu":
        return InferenceModel(model, rounding=precision, native=native_model(model, precision))
    if precision == "int8":
        raise UsageError(f'precision "int8" is for a CPU, not for {weight.device.type}. Use "bf16".')
    return InferenceModel(model, torch.bfloat16 if precision == "bf16" else None)


def native_model(model: EncoderDecoder, precision: Precision) -> NativeModel | None:
    """Return the native model; None if the dtype is not float32, or native code is not available or not used."""
    if model.output.weight.dtype != torch.float32 or (code := library()) is None or not is_used(code):
        return None
    return NativeModel(model, precision, code)


def is_used(code: ctypes.CDLL) -> bool:
    """Return whether a library is used: it measured faster than torch, or `MANYHEADS_NATIVE=1` is set."""
    return os.environ.get(SWITCH) == "1" or (speed := native_speed(code)) is None or speed.faster


def native_speed(code: ctypes.CDLL) -> NativeSpeed | None:
    """Return the measured speed of a library and of torch; it is measured once and stored beside the library.

    A library outside the cache is not measured (None), because it is deleted at the end of the process.
    """
    path = measurement_path(code)
    return None if path is None else cached_speed(path, code)


@functools.cache
def cached_speed(path: Path, code: ctypes.CDLL) -> NativeSpeed:
    """Load a measurement; make and store it if there is none."""
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        stored = load_measurement(path)
        native = {int(rows): float(seconds) for rows, seconds in stored["native"].items()}
        by_torch = {int(rows): float(seconds) for rows, seconds in stored["torch"].items()}
        return NativeSpeed(int(stored["threads"]), native, by_torch)
    speed = measure(code)
    store_measurement(path, asdict(speed))
    return speed


def measure(code: ctypes.CDLL) -> NativeSpeed:
    """Time decoding steps of a small random model, alternately in native code and in torch."""
    config = ModelConfig(d_model=256, d_ff=1024, num_heads=4, num_encoder_layers=1, num_decoder_layers=3)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        model = EncoderDecoder(config, VOCAB_SIZE, VOCAB_SIZE).eval()
        paths = {
            "native": InferenceModel(model, native=NativeModel(model, "fp32", code)),
            "torch": InferenceModel(model),
        }
        source = torch.randint(5, VOCAB_SIZE, (max(ROW_COUNTS), SOURCE_LENGTH))
        shortest = {path: dict.fromkeys(ROW_COUNTS, math.inf) for path in paths}
        begun, rounds = time.perf_counter(), 0
        while rounds < 2 or time.perf_counter() - begun < MAX_MEASUREMENT_SECONDS:
            rounds += 1
            for rows in ROW_COUNTS:
                for path, packed in paths.items():
                    seconds = step_seconds(packed, source[:rows])
                    shortest[path][rows] = min(shortest[path][rows], seconds)
    return NativeSpeed(torch.get_num_threads(), shortest["native"], shortest["torch"])


def step_seconds(model: InferenceModel, source: Tensor) -> float:
    """Return the shortest time of a few decoding steps in seconds; source: (R, S)."""
    stepper, tokens = EncoderDecoderStepper(model, source), source[:, 0].contiguous()
    shortest = math.inf
    for _ in range(STEPS_A_ROUND):
        begun = time.perf_counter()
        stepper.step(tokens)
        shortest = min(shortest, time.perf_counter() - begun)
    return shortest
