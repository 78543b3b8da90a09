"""Gradients within the memory there is: when it runs out, the parts of an update are halved."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from manyheads.errors import TrainingError
from manyheads.training.generators import put_generators, take_generators
from manyheads.training.memory import out_of_memory
from manyheads.training.part import Part
from manyheads.training.update import Sums, Updater

__all__ = ["OomRecovery", "split"]

CURE = "Take a smaller training.batch_tokens, a larger training.accumulation or a smaller model."


def split(batches: Sequence[Part], times: int) -> Sequence[Part]:
    """Each batch halved that many times, down to single examples: the same in the same order."""
    for _ in range(times):
        batches = [half for batch in batches for half in batch.halves()]
    return batches


class OomRecovery:
    """Computes gradients; what was too large once is cut smaller from then on.

    Attributes:
        splits: how often parts are halved.
    """

    def __init__(self, updater: Updater, tell: Callable[[str], None]) -> None:
        self.updater = updater
        self.tell = tell
        self.splits = 0

    def gradients(self, batches: Sequence[Part], tokens: float, where: Callable[[], str]) -> list[Sums]:
        """The gradients of an update; when memory runs out, of its halves: the same but for rounding and dropout.

        Args:
            batches: this process's parts of the update.
            tokens: target tokens of the whole update, in all processes.
            where: names the pairs, for a message.

        Raises:
            TrainingError: there is not enough for a single example, or one of several processes has run out.
        """
        updater = self.updater
        while True:
            generators = take_generators(updater.device)
            try:
                return updater.gradients(split(batches, self.splits), tokens)
            except (RuntimeError, MemoryError) as error:
                self.halve(error, batches, where)
            # here the exception is gone, and with it all that its frames held
            if updater.device.type == "cuda":
                torch.cuda.empty_cache()
            put_generators(generators, updater.device)

    def halve(self, error: Exception, batches: Sequence[Part], where: Callable[[], str]) -> None:
        """Halve from now on after memory ran out, or give up."""
        if not out_of_memory(error):
            raise error
        self.updater.forget()
        if self.updater.world.size > 1:
            raise TrainingError(f"memory ran out in an update of {where()}. {CURE}") from error
        if 2**self.splits >= max(batch.examples for batch in batches):
            raise TrainingError(f"there is not memory enough for a single example of {where()}. {CURE}") from error
        self.splits += 1
        self.tell(
            f"warning: memory ran out in an update of {where()}: its parts are halved, and those of all to come"
        )
