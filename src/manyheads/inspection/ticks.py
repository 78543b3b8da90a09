"""Round numbers along an axis."""

from __future__ import annotations

import math

__all__ = ["tick_text", "ticks"]


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """At most `most` + 1 round numbers from low to high, 1, 2 or 5 times a power of ten apart."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    """A number as short as it can be said: 20k, 6,989, 0.005."""
    if abs(value) >= 1_000:
        return f"{value:,.0f}" if value % 100 else f"{value / 1_000:g}k"
    return f"{round(value, 10):g}"
