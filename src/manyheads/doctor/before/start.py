"""Findings about the new model before its first update."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from manyheads.doctor.catalogue import config_finding
from manyheads.doctor.report import Finding

__all__ = ["Start", "start_findings"]

# Times ln V; below it a new model cannot honestly be, but for the chance of one batch. With tied embeddings the
# token that was read begins with a logit of about 0.4 sqrt(D) (docs/decisions.md): of few choices that is more.
LEAST, MOST, OWN_LOGIT = 0.8, 2.0, 0.4


@dataclass(frozen=True)
class Start:
    """Loss of a new model on the first batch.

    Attributes:
        loss: nats a prediction, without label smoothing.
        choices: V, or the number of classes.
        tied_width: D where the output matrix is that of the input, else 0.
    """

    loss: float
    choices: int
    tied_width: int = 0


def start_findings(start: Start) -> Iterator[Finding]:
    """Yield a finding if the loss is not near that of a blind guess."""
    blind = math.log(start.choices)
    most = MOST * max(blind, OWN_LOGIT * math.sqrt(start.tied_width))
    if not LEAST * blind <= start.loss <= most:
        evidence = (
            f"the loss of the first batch is {start.loss:.2f} nats before any update; a blind guess among "
            f"{start.choices:,} costs {blind:.2f}"
        )
        yield config_finding("wrong-at-the-start", evidence)
