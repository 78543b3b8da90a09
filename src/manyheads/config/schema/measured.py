"""The `[measured]` settings: scores that a recipe reached, by number of updates."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from manyheads.config.schema.section import Positive, Section

__all__ = ["MeasuredConfig"]

NAMES = {"bleu": "BLEU", "chrf": "chrF"}


class MeasuredConfig(Section):
    """Test scores by number of updates, written by benchmarks/quality.py; they tell what limited time will give."""

    metric: Literal["bleu", "chrf"] = Field("bleu", description="score of data.test, searched as in [search]")
    signature: str = Field("", description="sacreBLEU signature of the scores")
    seeds: Positive = Field(1, description="trainings whose mean each score is")
    pairs: Annotated[int, Field(ge=0)] = Field(0, description="training pairs, after filtering")
    settings: str = Field(
        "",
        description="fingerprint of the settings that the scores depend on; once one of them is changed, nothing "
        "is expected from the scores any more",
    )
    updates: tuple[Positive, ...] = Field(
        (), description="updates of each training, rising; the last is the recipe's own result"
    )
    scores: tuple[Annotated[float, Field(ge=0.0, le=100.0)], ...] = Field(
        (), description="score after each number of updates, never falling"
    )
    processors: tuple[str, ...] = Field((), description="class of processor that each score was measured on")

    @model_validator(mode="after")
    def check_points(self) -> Self:
        """Refuse a table with rows of unequal length or values out of order."""
        if not len(self.updates) == len(self.scores) == len(self.processors):
            raise ValueError(
                f"measured.updates holds {len(self.updates)} values, measured.scores {len(self.scores)} and "
                f"measured.processors {len(self.processors)}. Give one score and one processor for each."
            )
        if any(one >= other for one, other in pairwise(self.updates)):
            raise ValueError(f"measured.updates = {list(self.updates)} must rise from each value to the next.")
        if any(one > other for one, other in pairwise(self.scores)):
            raise ValueError(f"measured.scores = {list(self.scores)} must not fall; leave out the point that does.")
        return self

    @property
    def name(self) -> str:
        """Name of the metric as papers write it."""
        return NAMES[self.metric]

    def score_after(self, updates: int) -> float | None:
        """Return the score to expect, linear in the logarithm of the updates; None outside of the table."""
        after = bisect_right(self.updates, updates)
        if after == 0 or (after == len(self.updates) and updates > self.updates[-1]):
            return None
        if updates == self.updates[after - 1]:
            return self.scores[after - 1]
        low, high = math.log(self.updates[after - 1]), math.log(self.updates[after])
        share = (math.log(updates) - low) / (high - low)
        return self.scores[after - 1] + share * (self.scores[after] - self.scores[after - 1])

    def summary(self) -> str:
        """Return all scores in one line, the processor named where it changes; empty without scores."""
        points, last = [], ""
        for updates, score, processor in zip(self.updates, self.scores, self.processors, strict=True):
            points.append(f"{score:.1f} after {updates:,}")
            if last and processor != last:
                points[-2] += f" ({last})"
            last = processor
        return f"{self.name} {', '.join(points)} updates ({last})" if points else ""
