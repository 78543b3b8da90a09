"""Let the import paths of the last version work for one more, with a warning that names the new path."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# Below manyheads: module, or package with all that it held -> its place; the longest name that fits counts.
_MOVED = {
    "build": "improve.build",
    "build.text": "improve.build.steps.translate",
    "checkpoint.sharded": "tensors.sharded",
    "checkpoint.weights": "tensors.weights",
    "data": "bitext",
    "data.batch": "tensors.pairs",
    "data.blocks": "tensors.blocks",
    "data.cleaning.corrections": "data.corrections",
    "data.examples": "tensors.examples",
    "data.glossary": "inference.translation.glossary",
    "data.languages": "bitext.scripts",
    "data.literals": "inference.translation.literals",
    "data.masked": "tensors.masked",
    "decoding.auto_engine": "inference.engines",
    "decoding.batching": "inference.batching",
    "decoding.native": "inference.native",
    "decoding.native_engine": "inference.native_engine",
    "decoding.threads": "inference.threads",
    "decoding.window": "inference.window",
    "inspection": "views",
    "inspection.capture": "tensors.capture",
    "inspection.views": "views.picture",
    "interop.bundle": "checkpoint.bundle",
    "interop.html": "web",
    "interop.hub": "checkpoint.hub",
    "interop.parity": "inference.parity",
    "languages": "bitext.languages",
    "notes": "results",
    "runs.about": "inference.about",
    "runs.corrections": "improve.corrections",
    "runs.export_settings": "inference.export_settings",
    "runs.html_export": "web.html_export",
    "runs.inspect": "inference.inspect",
    "runs.page": "web.html_page",
    "runs.proof": "improve.proof",
    "runs.shown_card": "checkpoint.shown_card",
    "runs.translate_file": "inference.translation.translate_file",
    "runs.tune": "improve.tune",
    "runs.tune_checks": "improve.tune_checks",
    "runs.tune_text": "improve.tune_text",
    "search.beam": "decoding.beam",
    "search.candidates": "decoding.candidates",
    "search.constrained": "decoding.constrained",
    "search.ensemble": "decoding.ensemble",
    "search.greedy": "decoding.greedy",
    "search.rules": "decoding.rules",
    "search.cancellation": "decoding.cancellation",
    "search.sampling": "decoding.sampling",
    "shell": "bitext.shell",
    "tasks.assembly": "inference.translation.assembly",
    "tasks.batch_sources": "training.batch_sources",
    "tasks.classification.classifier": "inference.classifier",
    "tasks.classification.inspection": "inspection.classification",
    "tasks.confidence": "inference.translation.confidence",
    "tasks.corpus": "data.training_text",
    "tasks.directions": "inference.translation.directions",
    "tasks.generation": "inference.generation",
    "tasks.head_steps": "inspection.head_steps",
    "tasks.initial_model": "training.initial_model",
    "tasks.initialize": "training.initialize",
    "tasks.inspecting": "inspection",
    "tasks.inspecting.options": "inference.inspect_options",
    "tasks.isolation": "inspection.isolation",
    "tasks.kept_texts": "inference.translation.literals",
    "tasks.labels": "inference.labels",
    "tasks.language_modeling.generator": "inference.generator",
    "tasks.language_modeling.inspection": "inspection.language_model",
    "tasks.language_modeling.next_token": "inference.next_token",
    "tasks.loading": "inference.loading",
    "tasks.match_source": "inference.translation.match_source",
    "tasks.options": "inference.translation.options",
    "tasks.parts": "inference.translation.parts",
    "tasks.preparation": "training.preparation",
    "tasks.pretrained": "runs.pretrained",
    "tasks.registry": "training.registry",
    "tasks.result": "inference.translation.result",
    "tasks.scored_text": "training.scored_text",
    "tasks.task": "training.task",
    "tasks.term_hints": "tasks.translation.term_hints",
    "tasks.terms": "inference.translation.terms",
    "tasks.text_batches": "decoding.text_batches",
    "tasks.text_task": "training.text_task",
    "tasks.texts": "inference.texts",
    "tasks.translation.grouped": "inference.translation.grouped",
    "tasks.translation.inspection": "inspection.translation",
    "tasks.translation.translator": "inference.translation.translator",
    "text.source_model": "inference.translation.unlike_training",
    "training.log": "reports",
    "training.precision": "tensors.devices",
    "unicode": "bitext.unicode",
}


def _new_path(name: str) -> str:
    """Return the present path of a module, its own if it was not moved."""
    inner = name.removeprefix("manyheads.")
    former = max((old for old in _MOVED if f"{inner}.".startswith(f"{old}.")), key=len, default=None)
    if name == inner or former is None:
        return name
    new = _MOVED[former]
    return f"{'' if new.startswith('bitext') else 'manyheads.'}{new}{inner.removeprefix(former)}"


class FormerPaths:
    """Find a moved module by its former path; the last finder of `sys.meta_path`, asked where all others fail."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import a module by its former path, None for any other name."""
        new = _new_path(name)
        try:
            found = None if new == name else importlib.util.find_spec(new)
        except ModuleNotFoundError:  # its package
            return None
        if found is None:
            return None
        # A package is empty: the others would find the modules of its folder a second time.
        package = found.submodule_search_locations is not None
        return ModuleSpec(name, self, is_package=package)  # type: ignore[arg-type]  # importlib.abc takes long to import

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system create the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the moved module in the place of the one that the import system created."""
        new = _new_path(module.__name__)
        if not hasattr(module, "__path__"):
            warnings.warn(
                f"{module.__name__} is now {new}; the former path goes with the next version.",
                FutureWarning,
                stacklevel=2,
            )
            sys.modules[module.__name__] = importlib.import_module(new)
