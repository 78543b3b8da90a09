"""Convert files to text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitext.convert import ConvertOptions, convert_files
from bitext.files import discard
from bitext.formats.text import TextRequest
from manyheads.data import PROGRAM
from manyheads.improve.build.inputs import BuildContext
from manyheads.improve.build.schema import ConvertStep


def run(context: BuildContext, name: str, step: ConvertStep, folder: Path) -> Mapping[str, Any]:
    """Convert the files of a step."""
    plan = context.plan
    for path in folder.iterdir():  # left by an interrupted process: no file is overwritten
        discard(path)
    request = TextRequest(plan.source, plan.target, step.columns)
    options = ConvertOptions("text", request, step.licence, step.origin, program=PROGRAM)
    with context.listener.phase("converting", None, "pairs") as advance:
        converted = convert_files([str(plan.root / file) for file in step.files], folder, options, advance)
    return {"pairs": sum(source.pairs for source in converted.sources)}
