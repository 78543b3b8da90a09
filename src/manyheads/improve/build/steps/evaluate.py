"""Score a model on a text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.checkpoint import write_atomically
from manyheads.checkpoint.files import as_json
from manyheads.improve.build.inputs import BuildContext, direction_of
from manyheads.improve.build.schema import EvaluateStep
from manyheads.runs.evaluate import evaluate


def run(context: BuildContext, name: str, step: EvaluateStep, folder: Path) -> Mapping[str, Any]:
    """Score the run of a step, and write its scores."""
    plan = context.plan
    source, reference = plan.files(step.text, direction_of(plan, step.model))
    overrides = [f"search.beam_size={step.beam}"] if step.beam else []
    scores = evaluate(
        plan.model(step.model), source=source, reference=reference, overrides=overrides, device=context.device,
        listener=context.listener,
    ).to_json()  # fmt: skip
    write_atomically(folder / "scores.json", as_json(scores))
    return {
        "bleu": round(scores["bleu"], 2),
        "chrf": round(scores["chrf"], 2),
        "text": step.text,
        "sentences": scores["sentences"],
        "beam": scores["beam_size"],
        "signature": scores["signature"]["bleu"],
    }
