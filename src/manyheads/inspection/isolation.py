"""Isolated copies of a loaded model, to inspect it while other threads compute with it.

An inspection observes all calls of the modules. A copy has separate modules, so that only one text is observed; it
shares the weights, and so takes no further memory.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from torch import Tensor, nn

from manyheads.decoding.engine import TorchEngine
from manyheads.decoding.language_model import ArrayStepper
from manyheads.inference.classifier import Classifier
from manyheads.inference.generator import Generator, TextStepper
from manyheads.inference.inspect_options import Changes
from manyheads.inference.translation.translator import Translator
from manyheads.inspection.changes import changed
from manyheads.inspection.rereading import RereadingStepper, RereadingTextStepper
from manyheads.inspection.translation import single_model
from manyheads.search.beam_state import BeamObserver
from manyheads.search.interface import Cancelled, Hypothesis, Stepper, never_cancelled
from manyheads.search.options import Constraints, SearchOptions

_Module = TypeVar("_Module", bound=nn.Module)


def _isolate(
    loaded: Translator | Classifier | Generator, cancelled: Cancelled = never_cancelled
) -> Translator | Classifier | Generator:
    """Return a copy with its own modules; once `cancelled` returns a row, each search ends at its next step."""
    if isinstance(loaded, Translator):
        engine = loaded.torch_engine
        isolated_engine = loaded.engine if engine is None else _CancellableEngine(engine, cancelled)
        return replace(loaded, engine=isolated_engine)
    isolated_copy = copy.copy(loaded)
    isolated_copy.model = _with_same_weights(loaded.model)
    return isolated_copy


@contextmanager
def isolated_with_changes(
    loaded: Translator | Classifier | Generator, changes: Changes, cancelled: Cancelled = never_cancelled
) -> Iterator[Translator | Classifier | Generator]:
    """Yield an isolated copy that computes with the changes."""
    copied = _isolate(loaded, cancelled)
    if not changes:
        yield copied
        return
    if isinstance(copied, Translator):
        engine = single_model(copied)
        copied = replace(copied, engine=_RereadingEngine(engine, cancelled))
    elif isinstance(copied, Generator):
        copied = _RereadingGenerator(copied.config, copied.tokenizer, copied.model)
    with changed(copied.model, changes):
        yield copied


class _CancellableEngine(TorchEngine):
    """An engine with separate modules around the weights of another engine; its searches can be cancelled."""

    def __init__(self, engine: TorchEngine, cancelled: Cancelled) -> None:
        super().__init__(list(map(_with_same_weights, engine.models)), engine.precision)
        self.packed = engine.packed
        self.cancelled = cancelled

    def search_batch(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints],
        cancelled: Cancelled,
        observer: BeamObserver | None = None,
    ) -> list[list[Hypothesis]]:
        indices = range(len(rows))
        return super().search_batch(
            rows, options, constraints, lambda: indices if self.cancelled() else (), observer
        )


class _RereadingEngine(_CancellableEngine):
    """An engine that searches by calling the model itself, so that hooks of its modules take effect."""

    def steppers(self, source: Tensor) -> list[Stepper]:
        return [RereadingStepper(model, source) for model in self.models]


class _RereadingGenerator(Generator):
    """A language model that continues a text by calling the model itself, so that its hooks take effect."""

    def stepper(self, contexts: Sequence[Sequence[int]], most: int) -> TextStepper:
        model = self.model
        return ArrayStepper(RereadingTextStepper(model, contexts, self.window), model.output.weight.device)


def _with_same_weights(model: _Module) -> _Module:
    """Return a copy of the modules that shares all parameters and buffers."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared)
