"""Dependencies of a step of a plan: the settings, inputs and files that its record holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitext.file_names import Split
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import FREE_TO_CHANGE, Config
from manyheads.data.reading import READINGS
from manyheads.improve.build.plan import Plan
from manyheads.improve.build.record import model_files
from manyheads.improve.build.schema import (
    CleanStep,
    ConvertStep,
    DistilStep,
    MixStep,
    Step,
    TrainStep,
    TranslateStep,
)
from manyheads.reports import Listener
from transformer_doctor.texts import Language

_TEXT_SETTINGS = {
    "data.root",
    "data.train",
    "data.valid",
    "data.test",
    "data.more",
    "data.dataset",
    "model.init_from",
}


@dataclass(frozen=True)
class BuildContext:
    """The plan, listener, device and workers of a build.

    Attributes:
        plan: the plan.
        listener: receives progress and messages.
        device: device to compute on.
        scheduler: see `open_executor`, for translations and cleanings.
        workers: see `open_executor`, for translations and cleanings.
        language: language of the model cards.
    """

    plan: Plan
    listener: Listener
    device: str = "auto"
    scheduler: str | None = None
    workers: int | None = None
    language: Language = "en"


def settings_of(plan: Plan, name: str) -> dict[str, Any]:
    """Return the settings of a step that its product depends on, as flat keys such as training.steps."""
    step = plan.steps[name]
    if isinstance(step, TrainStep):
        settings = plan.configs[name].flat()
        ignored = FREE_TO_CHANGE | (_TEXT_SETTINGS if step.text is not None else {"model.init_from"})
        texts = {"text": list(step.texts)} if step.text is not None else {}
        return {key: value for key, value in settings.items() if key not in ignored} | texts
    settings = step.model_dump()
    del settings["kind"]
    if isinstance(step, MixStep):
        return {"text": settings["text"]}
    settings.pop("text", None)
    return settings


def input_files(plan: Plan, name: str) -> dict[str, list[Path]]:
    """Return the files of each text that a step reads, by the name of the text."""
    step = plan.steps[name]
    if isinstance(step, TrainStep) and step.text is None:
        config = plan.configs[name]
        return {f"data.{split}": files for split, files in _files_of_config(config).items()}
    if isinstance(step, ConvertStep):
        return {file: [plan.root / file] for file in step.files}
    return {text: plan.files(text, languages_read(plan, name)) for text in step.texts}


def _files_of_config(config: Config) -> dict[str, list[Path]]:
    """Return the files of each split that a configuration names; none for built-in text and data sets."""
    data, files = config.data, READINGS[config.spec.reads].files
    found = {"train": data} | {f"more.{i}": data.model_copy(update={"train": c}) for i, c in enumerate(data.more)}
    files_by_split = {name: list(files(part, "train")) for name, part in found.items() if part.reads_files("train")}
    held_out: list[Split] = ["valid"] if data.test is None else ["valid", "test"]
    return files_by_split | {split: list(files(data, split)) for split in held_out if data.reads_files(split)}


def languages_read(plan: Plan, name: str) -> list[str]:
    """Return the languages of the texts that a step reads, the source first."""
    step = plan.steps[name]
    if isinstance(step, TrainStep):
        return list(plan.configs[name].languages)
    if isinstance(step, CleanStep | MixStep):
        return [plan.source, plan.target]
    source, target = direction_of(plan, step.models[0])
    if isinstance(step, TranslateStep) or (isinstance(step, DistilStep) and step.method == "sequence"):
        return [source]
    return [source, target]


def direction_of(plan: Plan, model: str) -> tuple[str, str]:
    """Return source and target language of a model: a step that trains, or a run directory."""
    if model in plan.configs:
        return plan.configs[model].languages
    return RunDirectory.existing(Path(model)).config_of("translation").languages


def product_files(step: Step, folder: Path) -> list[Path]:
    """Return the files of a product whose hashes are recorded."""
    if step.product == "model":
        return [*model_files(folder), folder / "config.json"]
    files = folder.iterdir() if step.product == "text" else folder.rglob("*")
    return sorted(path for path in files if path.is_file())
