"""Rate limits by token buckets, one for each key or address."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

__all__ = ["RateLimiter"]

MAX_BUCKETS = 10_000  # the most recently used ones; an idle bucket is full again and can be dropped


class RateLimiter:
    """Token buckets: each holds as many tokens as requests are allowed a minute, and refills evenly.

    Args:
        clock: returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.levels: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # client: (tokens, time of the last take)

    def take(self, client: str, per_minute: int) -> float:
        """Take a token; return 0, or the seconds until there is one.

        Args:
            client: the name of the bucket.
            per_minute: requests allowed a minute; 0 means no limit.
        """
        if not per_minute:
            return 0.0
        now = self.clock()
        level, since = self.levels.pop(client, (float(per_minute), now))
        level = min(float(per_minute), level + (now - since) * per_minute / 60)
        seconds = 0.0 if level >= 1 else (1 - level) * 60 / per_minute
        self.levels[client] = (level if seconds else level - 1, now)
        while len(self.levels) > MAX_BUCKETS:
            self.levels.popitem(last=False)
        return seconds
