"""Inspect a loaded translator, classifier or language model; the results are objects of `inspection`."""

from manyheads.tasks.inspecting.classification import inspect_classification
from manyheads.tasks.inspecting.language_modeling import inspect_language_model
from manyheads.tasks.inspecting.model import inspect_model
from manyheads.tasks.inspecting.options import InspectOptions
from manyheads.tasks.inspecting.translation import inspect_translation

__all__ = [
    "InspectOptions",
    "inspect_classification",
    "inspect_language_model",
    "inspect_model",
    "inspect_translation",
]
