"""A loaded model that is looked into while others compute with it.

What looks into a model listens at its modules. So that it hears one text alone, it has modules of its own; their
weights are those of the model itself, and take no further memory.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TypeVar

from torch import Tensor, nn

from manyheads.decoding.engine import Job, TorchEngine
from manyheads.search.interface import Cancelled, Hypothesis, Stepper, never_cancelled
from manyheads.tasks.classification import Classifier
from manyheads.tasks.language_modeling import Generator
from manyheads.tasks.translation import Translator

__all__ = ["apart"]

Module = TypeVar("Module", bound=nn.Module)


def apart(
    loaded: Translator | Classifier | Generator, cancelled: Cancelled = never_cancelled
) -> Translator | Classifier | Generator:
    """The same with modules of its own; once `cancelled` names anything, every search ends at its next step."""
    if isinstance(loaded, Translator):
        engine = loaded.engine
        if isinstance(engine, TorchEngine):
            engine = EngineApart(engine, cancelled)
        return Translator(loaded.config, loaded.tokenizers, engine)
    if isinstance(loaded, Classifier):
        classifier = copy.copy(loaded)
        classifier.model = with_same_weights(loaded.model)
        return classifier
    generator = copy.copy(loaded)
    generator.model = with_same_weights(loaded.model)
    return generator


class EngineApart(TorchEngine):
    """An engine around the same weights as another one, each of whose searches can be abandoned."""

    def __init__(self, engine: TorchEngine, cancelled: Cancelled) -> None:
        super().__init__(list(map(with_same_weights, engine.models)), engine.combine, engine.precision)
        self.packed = engine.packed
        self.cancelled = cancelled

    def stepper(self, source: Tensor, job: Job) -> Stepper:
        """See `TorchEngine.stepper`."""
        return super().stepper(source, self.watched(job))

    def searched(self, job: Job) -> list[list[Hypothesis]]:
        """See `TorchEngine.searched`."""
        return super().searched(self.watched(job))

    def watched(self, job: Job) -> Job:
        """A job all of whose rows are abandoned at once."""
        rows = range(len(job.rows))
        return replace(job, cancelled=lambda: rows if self.cancelled() else ())


def with_same_weights(model: Module) -> Module:
    """Other modules around the same tensors."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared)
