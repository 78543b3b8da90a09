"""The kinds of steps of a plan: each is one module of this folder, and an entry here and in `schema.KINDS`."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from bitext.sources import copy_sources
from manyheads.checkpoint.shown_card import write_korean_card
from manyheads.improve.build.inputs import BuildContext, input_files
from manyheads.improve.build.schema import DistilStep, ExportStep, MixStep, TrainStep, TranslateStep

STEPS = {
    "convert": "convert",
    "clean": "clean",
    "mix": "mix",
    "train": "train",
    "translate": "translate",
    "distil": "translate",
    "fine-tune": "train",
    "export": "export",
    "evaluate": "evaluate",
}


def run_step(context: BuildContext, name: str, folder: Path) -> dict[str, Any]:
    """Make the product of a step in a folder, which may hold files of an interrupted process of the same step.

    The function `run` of the module of its kind has the arguments `(context, name, step, folder)`.

    Returns:
        The result to display.
    """
    step = context.plan.steps[name]
    folder.mkdir(parents=True, exist_ok=True)
    result = dict(import_module(f"{__name__}.{STEPS[step.kind]}").run(context, name, step, folder))
    if isinstance(step, MixStep | TranslateStep | DistilStep):
        files = chain.from_iterable(input_files(context.plan, name).values())
        copy_sources(files, folder / f"text.{context.plan.source}")
    if context.language == "ko" and isinstance(step, TrainStep | ExportStep):
        write_korean_card(folder / result.get("path", ""))
    return result
