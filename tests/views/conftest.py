"""An inspection of each kind."""

from __future__ import annotations

import pytest
from tests.inference.test_classifier import make_classifier
from tests.inference.test_generator import make_generator
from tests.inspection.test_inspect_loaded import KOREAN, korean

from manyheads.inspection.classification import inspect_classification
from manyheads.inspection.language_model import inspect_language_model
from manyheads.inspection.model import inspect_model
from manyheads.inspection.translation import inspect_translation
from manyheads.views.documents import Inspection, TranslationInspection


@pytest.fixture(scope="package")
def found() -> TranslationInspection:
    return inspect_translation(korean(), KOREAN)


@pytest.fixture(scope="package")
def all_inspections(found: TranslationInspection) -> list[Inspection]:
    translator = korean()
    return [
        found,
        inspect_classification(make_classifier(), "abc de"),
        inspect_language_model(make_generator(), "ab\nc"),
        inspect_model(translator.config, translator.model),
    ]
