"""Run each kind of step, and list the settings, inputs and files that its record holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from bitext.convert import ConvertOptions, convert_files
from bitext.file_names import Split
from bitext.files import discard
from bitext.formats.text import TextRequest
from bitext.sources import copy_sources
from manyheads.checkpoint import RunDirectory, write_atomically
from manyheads.checkpoint.files import as_json
from manyheads.checkpoint.shown_card import write_korean_card
from manyheads.config.load import parse_config
from manyheads.config.schema import Config
from manyheads.data import PROGRAM
from manyheads.data.reading import READINGS
from manyheads.improve.build.plan import Plan
from manyheads.improve.build.record import model_files
from manyheads.improve.build.schema import (
    CleanStep,
    ConvertStep,
    DistilStep,
    EvaluateStep,
    ExportStep,
    MixStep,
    Step,
    TrainStep,
    TranslateStep,
)
from manyheads.improve.build.text import mix_texts, translate_text
from manyheads.reports import Listener
from manyheads.runs.clean import clean
from manyheads.runs.evaluate import evaluate
from manyheads.runs.export import export
from manyheads.runs.resume import FREE_TO_CHANGE, flat
from manyheads.runs.train import train
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


# --- dependencies of a product ---


def settings_of(plan: Plan, name: str) -> dict[str, Any]:
    """Return the settings of a step that its product depends on, as flat keys such as training.steps."""
    step = plan.steps[name]
    if isinstance(step, TrainStep):
        settings = flat(plan.configs[name].model_dump())
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
    """Return the files of each text that a step reads, by the name of the text.

    Raises:
        UsageError: a text lacks a language that the step needs.
        DataError, RunError: a file or a model is missing.
    """
    step = plan.steps[name]
    if isinstance(step, TrainStep) and step.text is None:
        config = plan.configs[name]
        return {f"data.{split}": files for split, files in _files_of_config(config).items()}
    if isinstance(step, ConvertStep):
        return {file: [plan.root / file] for file in step.files}
    return {text: plan.files(text, _languages_read(plan, name)) for text in step.texts}


def _files_of_config(config: Config) -> dict[str, list[Path]]:
    """Return the files of each split that a configuration names; none for built-in text and data sets."""
    data, files = config.data, READINGS[config.spec.reads].files
    found = {"train": data} | {f"more.{i}": data.model_copy(update={"train": c}) for i, c in enumerate(data.more)}
    files_by_split = {name: list(files(part, "train")) for name, part in found.items() if part.reads_files("train")}
    held_out: list[Split] = ["valid"] if data.test is None else ["valid", "test"]
    return files_by_split | {split: list(files(data, split)) for split in held_out if data.reads_files(split)}


def _languages_read(plan: Plan, name: str) -> list[str]:
    step = plan.steps[name]
    if isinstance(step, TrainStep):
        return list(plan.configs[name].languages)
    if isinstance(step, CleanStep | MixStep):
        return [plan.source, plan.target]
    source, target = _direction(plan, step.models[0])
    if isinstance(step, TranslateStep) or (isinstance(step, DistilStep) and step.method == "sequence"):
        return [source]
    return [source, target]


def _direction(plan: Plan, model: str) -> tuple[str, str]:
    if model in plan.configs:
        return plan.configs[model].languages
    return RunDirectory.existing(Path(model)).config_of("translation").languages


def product_files(step: Step, folder: Path) -> list[Path]:
    """Return the files of a product whose hashes are recorded."""
    if step.product == "model":
        return [*model_files(folder), folder / "config.json"]
    files = folder.iterdir() if step.product == "text" else folder.rglob("*")
    return sorted(path for path in files if path.is_file())


# --- making a product ---


def run_step(context: BuildContext, name: str, folder: Path) -> dict[str, Any]:
    """Make the product of a step in a folder, which may hold files of an interrupted process of the same step.

    Returns:
        The result to display.
    """
    step = context.plan.steps[name]
    folder.mkdir(parents=True, exist_ok=True)
    result = dict(_RUN[step.kind](context, name, step, folder))
    if isinstance(step, MixStep | TranslateStep | DistilStep):
        files = chain.from_iterable(input_files(context.plan, name).values())
        copy_sources(files, folder / f"text.{context.plan.source}")
    if context.language == "ko" and isinstance(step, TrainStep | ExportStep):
        write_korean_card(folder / result.get("path", ""))
    return result


def _run_convert(context: BuildContext, name: str, step: ConvertStep, folder: Path) -> Mapping[str, Any]:
    plan = context.plan
    for path in folder.iterdir():  # left by an interrupted process: no file is overwritten
        discard(path)
    request = TextRequest(plan.source, plan.target, step.columns)
    options = ConvertOptions("text", request, step.licence, step.origin, program=PROGRAM)
    with context.listener.phase("converting", None, "pairs") as advance:
        converted = convert_files([str(plan.root / file) for file in step.files], folder, options, advance)
    return {"pairs": sum(source.pairs for source in converted.sources)}


def _run_clean(context: BuildContext, name: str, step: CleanStep, folder: Path) -> Mapping[str, Any]:
    plan, languages = context.plan, {"source": context.plan.source, "target": context.plan.target}
    files = [str(path.absolute()) for path in plan.files(step.text, list(languages.values()))]
    values = {"data": {**languages, "train": files}, "clean": step.clean}
    config = parse_config(values, origin=f"{plan.path}: steps.{name}")
    report = clean(config, folder, workers=context.workers, scheduler=context.scheduler, listener=context.listener)
    return {"pairs": report.kept, "removed": report.read - report.kept}


def _run_mix(context: BuildContext, name: str, step: MixStep, folder: Path) -> Mapping[str, Any]:
    plan, languages = context.plan, [context.plan.source, context.plan.target]
    parts = [(mixed, plan.files(mixed.text, languages)) for mixed in step.text]
    return {"pairs": mix_texts(parts, [folder / f"text.{language}" for language in languages])}


def _run_translate(
    context: BuildContext, name: str, step: TranslateStep | DistilStep, folder: Path
) -> Mapping[str, Any]:
    plan = context.plan
    count = translate_text(
        step,
        [plan.model(model) for model in step.models],
        plan.files(step.text, _languages_read(plan, name)),
        [folder / f"text.{language}" for language in _direction(plan, step.models[0])],
        listener=context.listener,
        device=context.device,
        scheduler=context.scheduler,
        workers=context.workers,
    )
    return {"lines": count}


def _run_train(context: BuildContext, name: str, step: TrainStep, folder: Path) -> Mapping[str, Any]:
    config = context.plan.configs[name]
    if context.device != "auto":
        config = config.model_copy(
            update={"training": config.training.model_copy(update={"device": context.device})}
        )
    summary = train(config, folder, listener=context.listener)
    return {"steps": summary.step, summary.metric: round(summary.best, 4), "best_step": summary.best_step}


_SUFFIXES = {"argos": ".argosmodel", "html": ".html"}  # of formats that are a single file


def _run_export(context: BuildContext, name: str, step: ExportStep, folder: Path) -> Mapping[str, Any]:
    out = folder / f"model{_SUFFIXES.get(step.to, '')}"
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


def _run_evaluate(context: BuildContext, name: str, step: EvaluateStep, folder: Path) -> Mapping[str, Any]:
    plan = context.plan
    source, reference = plan.files(step.text, _direction(plan, step.model))
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


_RUN: dict[str, Callable[..., Mapping[str, Any]]] = {
    "convert": _run_convert,
    "clean": _run_clean,
    "mix": _run_mix,
    "train": _run_train,
    "translate": _run_translate,
    "distil": _run_translate,
    "fine-tune": _run_train,
    "export": _run_export,
    "evaluate": _run_evaluate,
}
