"""The choice between the C code and torch: the C code is used where it measures faster on this machine."""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from manyheads.decoding.native.build import SWITCH, library, load_measurement, measurement_path, store_measurement


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
        """Speed of native code divided by the speed of torch, for each number of rows."""
        return {rows: self.torch[rows] / self.native[rows] for rows in self.native}

    @property
    def faster(self) -> bool:
        """Whether native code is at least as fast as torch, by the geometric mean of the ratios."""
        return math.prod(self.ratios.values()) >= 1


def used_library() -> ctypes.CDLL | None:
    """Return the library of the C code; None if there is none, or torch measured faster."""
    code = library()
    return code if code is not None and is_used(code) else None


def is_used(code: ctypes.CDLL) -> bool:
    """Return whether a library is used: it measured faster than torch, or `MANYHEADS_NATIVE=1` is set."""
    return os.environ.get(SWITCH) == "1" or (speed := native_speed(code)) is None or speed.faster


def native_speed(code: ctypes.CDLL) -> NativeSpeed | None:
    """Return the measured speed of a library and of torch; it is measured once and stored beside the library.

    A library outside the cache is not measured (None), because it is deleted at the end of the process.
    """
    path = measurement_path(code)
    return None if path is None else _cached_speed(path, code)


@functools.cache
def _cached_speed(path: Path, code: ctypes.CDLL) -> NativeSpeed:
    """Load a measurement; measure and store the speed if there is none."""
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        stored = load_measurement(path)
        native = {int(rows): float(seconds) for rows, seconds in stored["native"].items()}
        by_torch = {int(rows): float(seconds) for rows, seconds in stored["torch"].items()}
        if native.keys() == by_torch.keys() and all(
            0 < s < math.inf for s in (*native.values(), *by_torch.values())
        ):
            return NativeSpeed(int(stored["threads"]), native, by_torch)
    from manyheads.decoding.prepare import measure  # imports torch, once on a machine

    speed = measure(code)
    store_measurement(path, asdict(speed))
    return speed
