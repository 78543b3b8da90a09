"""Recovery when memory runs out (OOM): the gradients of an update are computed again from halved micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from manyheads.errors import TrainingError
from manyheads.training.batches import Losses, MicroBatch
from manyheads.training.memory import out_of_memory
from manyheads.training.snapshot import put_generators, take_generators
from manyheads.training.update import Updater

_CURE = "Take a smaller training.batch_tokens, a larger training.accumulation or a smaller model."


def _halve(micro_batches: Sequence[MicroBatch], times: int) -> Sequence[MicroBatch]:
    """Halve each micro-batch `times` times, down to single examples; the order of the examples stays."""
    for _ in range(times):
        micro_batches = [half for batch in micro_batches for half in batch.halves()]
    return micro_batches


class OomRecovery:
    """Retries of updates; micro-batches that were once too large for the memory stay halved.

    Attributes:
        splits: how many times each micro-batch is halved.
    """

    def __init__(self, updater: Updater, warn: Callable[[str], None]) -> None:
        self.updater = updater
        self.warn = warn
        self.splits = 0

    def gradients(
        self, micro_batches: Sequence[MicroBatch], tokens: float, where: Callable[[], str]
    ) -> list[Losses]:
        """Compute the gradients of an update; when memory runs out, halve the micro-batches and try again.

        Halving changes the gradients only by rounding and dropout. The arguments are those of `Updater.gradients`;
        `where` returns the place of the examples in the corpus, for a message.

        Raises:
            TrainingError: there is too little memory for a single example, or one of several processes ran out.
        """
        device = self.updater.device
        while True:
            generators = take_generators(device)
            try:
                return self.updater.gradients(_halve(micro_batches, self.splits), tokens)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                self.halve(error, micro_batches, where)
            # The exception is deleted by now, and with it every tensor that its frames held.
            if device.type == "cuda":
                torch.cuda.empty_cache()
            put_generators(generators, device)

    def halve(self, error: BaseException, micro_batches: Sequence[MicroBatch], where: Callable[[], str]) -> None:
        """Halve the micro-batches from now on, or raise a TrainingError where halving does not help."""
        self.updater.zero_grad()
        if self.updater.world.size > 1:
            raise TrainingError(f"memory ran out in an update of {where()}. {_CURE}") from error
        if 2**self.splits >= max(batch.examples for batch in micro_batches):
            cure = "Take a smaller data.max_length or a smaller model."
            reason = str(error).partition("\n")[0]
            raise TrainingError(
                f"there is not memory enough for a single example of {where()} ({reason}). {cure}"
            ) from error
        self.splits += 1
        self.warn(
            f"warning: memory ran out in an update of {where()}: its parts are halved, and those of all to come"
        )
