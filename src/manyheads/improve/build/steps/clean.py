"""Remove noisy pairs from a text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.config.load import parse_config
from manyheads.improve.build.inputs import BuildContext
from manyheads.improve.build.schema import CleanStep
from manyheads.runs.clean import clean


def run(context: BuildContext, name: str, step: CleanStep, folder: Path) -> Mapping[str, Any]:
    """Clean the text of a step."""
    plan, languages = context.plan, {"source": context.plan.source, "target": context.plan.target}
    files = [str(path.absolute()) for path in plan.files(step.text, list(languages.values()))]
    values = {"data": {**languages, "train": files}, "clean": step.clean}
    config = parse_config(values, origin=f"{plan.path}: steps.{name}")
    report = clean(config, folder, workers=context.workers, scheduler=context.scheduler, listener=context.listener)
    return {"pairs": report.kept, "removed": report.read - report.kept}
