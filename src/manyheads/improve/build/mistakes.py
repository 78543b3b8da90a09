"""Describe the mistakes of a plan, each with the most similar known name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manyheads.config.load import prepare
from manyheads.config.load.mistakes import describe_setting, hint
from manyheads.config.load.toml import to_toml
from manyheads.config.schema.base import Section, SettingsError, Wrong
from manyheads.improve.build.schema import KINDS, ExportStep, Mixed, MixStep, Step, TrainStep

_STEP_NAME = re.compile(r"\w[\w.-]*")
RECORDS = "records"  # folder of the records, beside the folders of the products


def parse_step(name: str, table: Any, texts: Mapping[str, Any]) -> tuple[Step | None, list[str]]:
    """Return a step, and its mistakes."""
    where = f"steps.{name}"
    why = ""
    if name in texts:
        why = "is also the name of a text"
    elif name.casefold() == RECORDS:
        why = "is the folder of the records: choose another name"
    elif not _STEP_NAME.fullmatch(name):
        why = "is no name: use letters, digits, - and _"
    if why:
        return None, [f"{where}: {name} {why}."]
    if not isinstance(table, dict) or "kind" not in table:
        return None, [f"{where}.kind is missing; there are {', '.join(KINDS)}."]
    kind = table["kind"]
    if kind not in KINDS:
        return None, [f"{where}.kind = {to_toml(kind)} is unknown{hint(str(kind), KINDS)}"]
    return parse_table(KINDS[kind], table, where)


def parse_table(model: type[Section], table: Mapping[str, Any], where: str) -> tuple[Any, list[str]]:
    """Validate a table; return the object or None, and the mistakes."""
    try:
        return model.model_validate(prepare(dict(table))), []
    except SettingsError as error:
        return None, list(dict.fromkeys(_describe(model, table, where, wrong) for wrong in error.wrong))


def _describe(model: type[Section], table: Mapping[str, Any], where: str, wrong: Wrong) -> str:
    key, *inside = wrong.path
    names = [part for part in inside if isinstance(part, str)]
    name = ".".join(filter(None, (where, str(key), *names)))
    value: Any = table.get(key)
    if names and model is MixStep:
        return describe_setting(name, wrong.reason, Mixed, names[-1], value[inside[0]].get(names[-1]))
    for part in names:
        value = value[part]
    if model is ExportStep and key == "force":
        return f"{name} is gone. Leave it out: a step of kind evaluate scores the model."
    return describe_setting(name, wrong.reason, model, str(key), value)


def wrong_names(steps: Mapping[str, Step], texts: Iterable[str]) -> list[str]:
    """Return the mistakes in the names of texts and models that the steps read."""
    writers = sorted({name for name, step in steps.items() if step.product == "text"} | set(texts))
    trainers = sorted(name for name, step in steps.items() if step.product == "model")
    mistakes = []
    for name, step in steps.items():
        for text in step.texts:
            if text in steps and text not in writers:
                kind = steps[text].kind
                mistakes.append(f'steps.{name}: text "{text}" is of kind {kind}, which writes no text.')
            elif text not in writers:
                mistakes.append(f'steps.{name}: text "{text}" is unknown{hint(text, writers)}')
        for model in step.models:
            if model in steps and model not in trainers:
                mistakes.append(f'steps.{name}: model "{model}" is a step that trains no model.')
            elif model not in steps and not (Path(model) / "config.json").is_file():
                why = f"is no step and no run directory{hint(model, trainers)}"
                mistakes.append(f'steps.{name}: model "{model}" {why}')
        mistakes += _wrong_tags(name, step, steps)
    return mistakes


def _wrong_tags(name: str, step: Step, steps: Mapping[str, Step]) -> list[str]:
    """Return a message for each tag in the training text of a step that its tokenizer would divide."""
    if not isinstance(step, TrainStep) or step.models:
        return []
    mixtures = [steps[text] for text in step.texts if isinstance(steps.get(text), MixStep)]
    tags = {mixed.tag for mixture in mixtures if isinstance(mixture, MixStep) for mixed in mixture.text} - {None}
    missing = sorted(tag for tag in tags if tag and tag not in step.tokenizer.get("symbols", ()))
    return [
        f"steps.{name}: its text has the tag {tag}, which the tokenizer would divide. Add symbols = "
        f'["{tag}"] below [steps.{name}.tokenizer].'
        for tag in missing
    ]
