"""Train a model, or fine-tune one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.improve.build.inputs import BuildContext
from manyheads.improve.build.schema import TrainStep
from manyheads.runs.train import train


def run(context: BuildContext, name: str, step: TrainStep, folder: Path) -> Mapping[str, Any]:
    """Train the run of a step, or go on with it."""
    config = context.plan.configs[name]
    if context.device != "auto":
        config = config.model_copy(
            update={"training": config.training.model_copy(update={"device": context.device})}
        )
    summary = train(config, folder, listener=context.listener)
    return {"steps": summary.step, summary.metric: round(summary.best, 4), "best_step": summary.best_step}
