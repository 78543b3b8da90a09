"""Recovery when memory runs out (OOM): the gradients of an update are computed again from halved micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

import torch

from manyheads.errors import TrainingError
from manyheads.training.batches import MicroBatch
from manyheads.training.memory import out_of_memory
from manyheads.training.snapshot import put_generators, take_generators
from manyheads.training.update import Updater

__all__ = ["Attempt", "OomRecovery", "split"]

CURE = "Take a smaller training.batch_tokens, a larger training.accumulation or a smaller model."


def split(micro_batches: Sequence[MicroBatch], times: int) -> Sequence[MicroBatch]:
    """Halve each micro-batch `times` times, down to single examples; the order of the examples stays."""
    for _ in range(times):
        micro_batches = [half for batch in micro_batches for half in batch.halves()]
    return micro_batches


class Attempt:
    """One attempt to compute the gradients of an update, as a context manager.

    Leaving the context because memory ran out suppresses the exception, drops the gradients, and makes all later
    attempts halve the micro-batches once more. Any other exception passes.

    Attributes:
        succeeded: whether the context was left without an exception.
    """

    def __init__(
        self, recovery: OomRecovery, micro_batches: Sequence[MicroBatch], where: Callable[[], str]
    ) -> None:
        self.recovery = recovery
        self.whole = micro_batches
        self.where = where
        self.succeeded = False

    @property
    def micro_batches(self) -> Sequence[MicroBatch]:
        """The micro-batches to compute in this attempt; read them inside the context, as splitting needs memory."""
        return split(self.whole, self.recovery.splits)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self.succeeded = error is None
        if error is None or not isinstance(error, (RuntimeError, MemoryError)) or not out_of_memory(error):
            return False
        self.recovery.halve(error, self.whole, self.where)
        return True


class OomRecovery:
    """Attempts to compute gradients; micro-batches that were once too large for the memory stay halved.

    Attributes:
        splits: how many times each micro-batch is halved.
    """

    def __init__(self, updater: Updater, warn: Callable[[str], None]) -> None:
        self.updater = updater
        self.warn = warn
        self.splits = 0

    def attempts(self, micro_batches: Sequence[MicroBatch], where: Callable[[], str]) -> Iterator[Attempt]:
        """Yield attempts until one succeeds; its gradients differ only by rounding and dropout from the whole ones.

        The caller must not keep a tensor with a graph in a local variable: it would outlive the failed attempt.

        Args:
            micro_batches: those of the update that this process computes.
            where: returns the place of the examples in the corpus, for a message.

        Raises:
            TrainingError: there is too little memory for a single example, or one of several processes ran out.
        """
        device = self.updater.device
        while True:
            generators = take_generators(device)
            attempt = Attempt(self, micro_batches, where)
            yield attempt
            if attempt.succeeded:
                return
            # By now the exception is gone, and with it every tensor that its frames held.
            if device.type == "cuda":
                torch.cuda.empty_cache()
            put_generators(generators, device)

    def halve(self, error: BaseException, micro_batches: Sequence[MicroBatch], where: Callable[[], str]) -> None:
        """Halve the micro-batches from now on, or raise a TrainingError where halving does not help."""
        self.updater.zero_grad()
        if self.updater.world.size > 1:
            raise TrainingError(f"memory ran out in an update of {where()}. {CURE}") from error
        if 2**self.splits >= max(batch.examples for batch in micro_batches):
            raise TrainingError(f"there is not memory enough for a single example of {where()}. {CURE}") from error
        self.splits += 1
        self.warn(
            f"warning: memory ran out in an update of {where()}: its parts are halved, and those of all to come"
        )
