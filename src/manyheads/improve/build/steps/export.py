"""Export a model for another program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.improve.build.inputs import BuildContext
from manyheads.improve.build.schema import ExportStep
from manyheads.inference.export_formats import FORMATS
from manyheads.runs.export import export


def run(context: BuildContext, name: str, step: ExportStep, folder: Path) -> Mapping[str, Any]:
    """Export the run of a step, unless that was done."""
    out = folder / f"model{FORMATS[step.to].suffix}"
    if out.exists():  # complete: an export appears under its name at the end
        return {"path": out.name}
    run = context.plan.model(step.model)
    result = export(
        run,
        out,
        step.to,
        quantization=step.quantization,
        language=context.language,
        listener=context.listener,
    )
    return {"path": out.name, "bytes": result.bytes}
