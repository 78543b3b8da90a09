"""An inspection of each kind."""

from __future__ import annotations

import pytest
from tests.tasks.classification.test_classifier import make_classifier
from tests.tasks.language_modeling.test_generator import make_generator
from tests.tasks.test_inspecting import KOREAN, korean

from manyheads.inspection.documents import Inspection, TranslationInspection
from manyheads.tasks.classification.inspection import inspect_classification
from manyheads.tasks.inspecting.model import inspect_model
from manyheads.tasks.language_modeling.inspection import inspect_language_model
from manyheads.tasks.translation.inspection import inspect_translation


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
