"""Inspect a loaded model of any task on a text."""

from __future__ import annotations

from manyheads.inspection.documents import Inspection
from manyheads.tasks.classification.classifier import Classifier
from manyheads.tasks.classification.inspection import inspect_classification
from manyheads.tasks.inspecting.options import InspectOptions
from manyheads.tasks.language_modeling.generator import Generator
from manyheads.tasks.language_modeling.inspection import inspect_language_model
from manyheads.tasks.translation.inspection import inspect_translation
from manyheads.tasks.translation.translator import Translator


def inspect_loaded(loaded: Translator | Classifier | Generator, text: str, options: InspectOptions) -> Inspection:
    """Inspect the computation of a model for a text.

    Raises:
        UsageError: the text or an option is not valid for this model.
    """
    if isinstance(loaded, Translator):
        return inspect_translation(loaded, text, options)
    if isinstance(loaded, Classifier):
        return inspect_classification(loaded, text, options)
    return inspect_language_model(loaded, text, options)
