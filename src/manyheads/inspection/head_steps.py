"""Inspect one head step by step on one text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from manyheads.inference.classifier import Classifier
from manyheads.inference.generator import Generator
from manyheads.inference.inspect_options import HeadName, InspectOptions
from manyheads.inference.loading import evaluating
from manyheads.inference.translation.assembly import with_end_mark
from manyheads.inference.translation.translator import Translator
from manyheads.inspection.changes import attention_of
from manyheads.inspection.classification import classifier_inputs
from manyheads.inspection.language_model import generator_inputs
from manyheads.inspection.translation import (
    inspected_search,
    outputs_of,
    single_model,
    translator_inputs,
)
from manyheads.tensors.capture import watch_head
from manyheads.views.parts import HeadSteps

_DEFAULTS = InspectOptions()


def inspect_head(
    loaded: Translator | Classifier | Generator, text: str, name: HeadName, options: InspectOptions = _DEFAULTS
) -> HeadSteps:
    """Return the computation of a head; its rows and columns are those of the attention of an inspection."""
    attention_of(name, loaded.model)
    with _reading(loaded, text, options) as inputs:
        return watch_head(loaded.model, *name, *inputs)


@contextmanager
def _reading(
    loaded: Translator | Classifier | Generator, text: str, options: InspectOptions
) -> Iterator[tuple[Tensor | None, ...]]:
    """Yield the inputs of the model for this text; the model is in evaluation mode within the context."""
    if isinstance(loaded, Translator):
        engine = single_model(loaded)
        with engine.evaluating():
            ids, outputs = outputs_of(loaded, engine, text, inspected_search(loaded, options), options)
            yield translator_inputs(engine, ids, with_end_mark(outputs.hypotheses[0]), options.padding)
    elif isinstance(loaded, Classifier):
        options.refuse("classification", "target", "prefix", "beam_size", "padding", "max_tokens")
        _, rows, types = classifier_inputs(loaded, text)
        with evaluating(loaded.model):
            yield rows, types
    else:
        options.refuse("language-modeling", "target", "beam_size", "padding")
        inputs, _ = generator_inputs(loaded, text, options)
        with evaluating(loaded.model):
            yield (inputs,)
