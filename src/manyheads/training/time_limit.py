"""The time limit of a training, `training.max_minutes`.

The minutes count from the start of the command to its end: reading the text, training the tokenizer, updates,
validations, checkpoints, and the averaging of checkpoints; of all that comes before the first update, at most half
of the limit. How many updates still fit is estimated again after every update, so that a learning rate that falls
to zero with the last update does so when the time is over, on a machine that becomes faster or slower too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from manyheads.config.schema import TrainingConfig

_PREPARATION_SHARE = 0.5  # share of the limit that the preparation can use up
_CHECK_SHARE = 0.25  # share of the time that validations and checkpoints may take; above it, they come later
_VALIDATION_SHARE = 0.05  # share of the limit that one validation may take; above it, fewer pairs are validated
_AVERAGE_OVERSHOOT = 0.05  # share of the limit by which the averaging of checkpoints at the end may exceed it
_TIMED_UPDATES = 20  # updates after which the number of updates that fit is reported
_FEW_UPDATES, _MORE_UPDATES = 100, 300  # below FEW_UPDATES, a warning names the minutes for MORE_UPDATES
# to time a validation, one example in so many is validated, as long as the time allows
_SAMPLE_STRIDES = (16, 4, 1)
_LONG_SAMPLE = 3.0  # times the time of a sample, after which the first sample is the only one


def seconds_per_update(update: float, check: float, save_every: int) -> float:
    """Return the mean seconds of an update, with its share of the validations and checkpoints.

    An update alone takes `update` seconds; a validation and a checkpoint take `check` seconds every `save_every`
    updates, unless these would exceed `_CHECK_SHARE`.
    """
    return update + min(check / save_every, update * _CHECK_SHARE / (1 - _CHECK_SHARE))


def fitting_updates(seconds: float, update: float, check: float, config: TrainingConfig) -> int:
    """Return how many updates fit into `seconds`, with their validations and those at the end."""
    seconds -= (2 if config.average_checkpoints > 1 else 1) * check
    return max(0, int(seconds / max(1e-9, seconds_per_update(update, check, config.save_every))))


def sampled_validation(seconds_of: Callable[[int], float], longest: float) -> float:
    """Return the seconds of a validation, from larger and larger samples until the next would take too long.

    `seconds_of(n)` validates one example in n, and returns the estimated seconds of a whole validation. A sample
    may take `longest` seconds, and the first one longer.
    """
    seconds = seconds_of(_SAMPLE_STRIDES[0])  # compiles and allocates too: an estimate only if time is short
    if seconds / _SAMPLE_STRIDES[0] > _LONG_SAMPLE * longest:
        return seconds
    seconds = 0.0
    for every in _SAMPLE_STRIDES:
        if seconds / every > longest:
            break
        seconds = seconds_of(every)
    return seconds


@runtime_checkable
class TimedValidation(Protocol):
    """A validation whose time can be estimated, and limited by validating on fewer pairs.

    Attributes:
        size: number of pairs whose loss is measured, and of sentences that are translated.
    """

    @property
    def size(self) -> Sequence[int]:
        """Number of pairs and number of sentences."""
        ...

    @size.setter
    def size(self, size: Sequence[int]) -> None: ...

    def seconds(self, every: int) -> float:
        """Return the estimated seconds of a validation, from one example in `every`."""
        ...

    def shorten(self, seconds: float) -> float:
        """Limit a validation to the pairs that `seconds` allow; return the estimated seconds of a validation."""
        ...


class TimeLimit:
    """The time limit of a training, the time used up, and the seconds of validations and checkpoints.

    Attributes:
        allowed: the limit in seconds.
        used: seconds used before `start`, by the preparation up to its share and by earlier commands.
        start: reading of the clock after which all seconds count.
        validation, saving: seconds of the last validation (before the first, of an estimate) and checkpoint.
        checks: seconds of all validations and checkpoints.
        timed: number of updates of this command, until the number that fits is reported; then None.
    """

    def __init__(self, config: TrainingConfig, minutes: float, prepared: float = 0.0) -> None:
        """Begin to count; `prepared` are the seconds of the preparation until now."""
        self.config = config
        self.allowed = 60 * minutes
        self.prepared = prepared
        self.used = min(prepared, _PREPARATION_SHARE * self.allowed)
        self.start = time.perf_counter()
        self.validation = self.saving = self.checks = 0.0
        self.timed: int | None = 0

    @property
    def elapsed(self) -> float:
        """The seconds of the limit that are used up."""
        return self.used + time.perf_counter() - self.start

    @property
    def longest_validation(self) -> float:
        """The seconds that one validation may take."""
        return _VALIDATION_SHARE * self.allowed

    def begin(self) -> None:
        """Count all time of this command until now as preparation."""
        now = time.perf_counter()
        self.prepared += now - self.start
        self.used, self.start = min(self.prepared, _PREPARATION_SHARE * self.allowed), now

    def fitting(self, update: float) -> int:
        """Return how many updates of `update` seconds still fit into the limit."""
        return fitting_updates(self.allowed - self.elapsed, update, self.validation + self.saving, self.config)

    def affords_check(self) -> bool:
        """Return whether another validation and checkpoint leave `_CHECK_SHARE` of the time until now."""
        return self.checks + self.validation + self.saving <= _CHECK_SHARE * self.elapsed

    def affords_average(self) -> bool:
        """Return whether the mean of the last checkpoints can be validated."""
        return self.elapsed + self.validation <= (1 + _AVERAGE_OVERSHOOT) * self.allowed

    def add_validation(self, seconds: float) -> None:
        """Record the seconds of a validation."""
        self.validation = seconds
        self.checks += seconds

    def add_saving(self, seconds: float) -> None:
        """Record the seconds of a checkpoint."""
        self.saving = seconds
        self.checks += seconds

    def messages(self, updates: int, most: int, update: float) -> list[str]:
        """Return the message about the number of updates that fit, once they were timed, and a warning of few.

        `updates` fit, those done included, of `most` that the configuration asks for; each takes `update` seconds.
        """
        if self.timed is None:
            return []
        self.timed += 1
        if self.timed < _TIMED_UPDATES and 2 * self.timed < updates:
            return []
        self.timed = None
        minutes = self.allowed / 60
        texts = [f"{update:.2f} s an update: about {updates:,} updates fit into {minutes:,g} minutes"]
        if self.prepared > _PREPARATION_SHARE * self.allowed:
            texts.insert(
                0,
                f"the preparation took {self.prepared / 60:.1f} of the {minutes:,g} minutes; training gets half of "
                f"them, and the command takes {(self.prepared + self.allowed / 2) / 60:.1f} minutes",
            )
        if updates < min(_FEW_UPDATES, most):
            more = min(_MORE_UPDATES, most)
            needed = self.allowed + (more - updates) * update
            texts.append(
                f"warning: {updates:,} updates are too few to learn from. For {more:,} at this speed, set "
                f"training.max_minutes = {int(needed / 60) + 1}"
            )
        return texts

    def state(self) -> dict[str, float]:
        """Return the state that resuming needs."""
        return {"used": self.elapsed, "validation": self.validation, "saving": self.saving, "checks": self.checks}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the state that `state` returned; its used time is added to the time of this command."""
        self.used += state.get("used", 0.0)
        for name in ("validation", "saving", "checks"):
            setattr(self, name, state.get(name, 0.0))
