"""The modules with torch that the half without it uses, by name; each is imported when it is first used."""

from __future__ import annotations

from typing import Any

from manyheads.errors import require

MODULES = {
    "devices": "manyheads.tensors.devices",
    "engine": "manyheads.decoding.engine",
    "evaluate": "manyheads.runs.evaluate",
    "head_steps": "manyheads.inspection.head_steps",
    "huggingface": "manyheads.interop.huggingface.task_model",
    "inspect": "manyheads.inspection.inspect_loaded",
    "inspect_model": "manyheads.inspection.model",
    "isolation": "manyheads.inspection.isolation",
    "language_model": "manyheads.decoding.language_model",
    "marian": "manyheads.interop.marian.reader",
    "model_card": "manyheads.runs.model_card",
    "models": "manyheads.tensors.models",
    "reference": "manyheads.interop.reference",
    "text_batches": "manyheads.decoding.text_batches",
}


def torch_module(name: str, purpose: str) -> Any:
    """Import a module of the table; `purpose` is what needs it, the subject of an error."""
    return require(MODULES[name], purpose=purpose)
