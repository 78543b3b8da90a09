"""The objects that `manyheads inspect` makes: one for each text, and one for a model as a whole.

Their JSON (`to_dict`, `from_dict`) is described in docs/inspecting.md. `VERSION` changes when a field changes its
meaning or goes; new fields may come without.
"""

from manyheads.inspection.documents.base import FORMAT, VERSION, Inspection
from manyheads.inspection.documents.classification import ClassificationInspection
from manyheads.inspection.documents.language_modeling import LanguageModelInspection
from manyheads.inspection.documents.model import ModelInspection
from manyheads.inspection.documents.translation import TranslationInspection

__all__ = [
    "FORMAT",
    "VERSION",
    "ClassificationInspection",
    "Inspection",
    "LanguageModelInspection",
    "ModelInspection",
    "TranslationInspection",
]
