"""Inspect a loaded model of any task on a text."""

from __future__ import annotations

from manyheads.inference.classifier import Classifier
from manyheads.inference.generator import Generator
from manyheads.inference.inspect_options import InspectOptions
from manyheads.inference.translation.translator import Translator
from manyheads.inspection.classification import inspect_classification
from manyheads.inspection.language_model import inspect_language_model
from manyheads.inspection.translation import inspect_translation
from manyheads.views.documents import Inspection


def inspect_loaded(loaded: Translator | Classifier | Generator, text: str, options: InspectOptions) -> Inspection:
    """Inspect the computation of a model for a text."""
    if isinstance(loaded, Translator):
        return inspect_translation(loaded, text, options)
    if isinstance(loaded, Classifier):
        return inspect_classification(loaded, text, options)
    return inspect_language_model(loaded, text, options)
