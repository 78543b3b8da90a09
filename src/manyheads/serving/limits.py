"""How often somebody may ask: a token bucket for each key or address."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

__all__ = ["Buckets"]

MOST_BUCKETS = 10_000  # those that were used last; a full one is forgotten without harm


class Buckets:
    """A bucket holds as many tokens as may be asked a minute, and fills evenly; a request takes one.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when that was

    def take(self, who: str, a_minute: int) -> float:
        """Take a token; returns 0, or the seconds after which there will be one.

        Args:
            who: whose bucket.
            a_minute: how many; 0 is any number.
        """
        if not a_minute:
            return 0.0
        now = self.clock()
        level, since = self.levels.pop(who, (float(a_minute), now))
        level = min(float(a_minute), level + (now - since) * a_minute / 60)
        waiting = 0.0 if level >= 1 else (1 - level) * 60 / a_minute
        self.levels[who] = (level if waiting else level - 1, now)
        while len(self.levels) > MOST_BUCKETS:
            self.levels.popitem(last=False)
        return waiting
