"""A loaded model that is looked into while others compute with it.

What looks into a model listens at its modules. So that it hears one text alone, it has modules of its own; their
weights are those of the model itself, and take no further memory.
"""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn

from manyheads.tasks.classification import Classifier
from manyheads.tasks.engine import TorchEngine
from manyheads.tasks.language_modeling import Generator
from manyheads.tasks.translation import Translator

__all__ = ["apart"]

Module = TypeVar("Module", bound=nn.Module)


def apart(loaded: Translator | Classifier | Generator) -> Translator | Classifier | Generator:
    """The same with modules of its own."""
    if isinstance(loaded, Translator):
        engine = copy.copy(loaded.engine)
        if isinstance(engine, TorchEngine):
            engine.models = [with_same_weights(model) for model in engine.models]
        return Translator(loaded.config, loaded.tokenizers, engine)
    found = copy.copy(loaded)
    found.model = with_same_weights(loaded.model)
    return found


def with_same_weights(model: Module) -> Module:
    """Other modules around the same tensors."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared)
