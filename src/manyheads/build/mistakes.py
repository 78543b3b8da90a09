"""Describe the mistakes of a plan, each with the most similar known name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manyheads.build.schema import KINDS, Mixed, MixStep, Step, TrainStep
from manyheads.config.load import prepare
from manyheads.config.load.mistakes import closest, phrase, suggestion
from manyheads.config.load.toml import shorten, to_toml
from manyheads.config.schema.base import Section, SettingsError, Wrong

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
        guess = suggestion(closest(str(kind), KINDS))
        return None, [
            f"{where}.kind = {to_toml(kind)} is unknown{guess or '; there are ' + ', '.join(KINDS) + '.'}"
        ]
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
    value: Any = table.get(key)
    last = str(key)
    if names and model is MixStep:
        model, value, last = Mixed, value[inside[0]].get(names[-1]), names[-1]
    else:
        for part in names:
            value = value[part]
    known = model.model_json_schema()["properties"]
    name = ".".join(filter(None, (where, str(key), *names)))
    if wrong.reason == "unknown":
        guess = suggestion(closest(last, known))
        return f"unknown key {name}{guess or '; there are ' + ', '.join(known) + '.'}"
    if wrong.reason == "missing":
        return f"{name} is missing: {known[last]['description']}."
    try:
        expected = f"not {phrase(known[last], value)}"
    except KeyError:  # a table
        expected = f"wrong: {known[last]['description']}"
    return f"{name} = {shorten(to_toml(value))} is {expected}."


def wrong_names(steps: Mapping[str, Step], texts: Iterable[str]) -> list[str]:
    """Return the mistakes in the names of texts and models that the steps read."""
    writers = {name for name, step in steps.items() if step.product == "text"} | set(texts)
    trainers = {name for name, step in steps.items() if step.product == "model"}
    mistakes = []
    for name, step in steps.items():
        for text in step.texts:
            if text not in writers:
                why = (
                    f"is of kind {vars(steps[text])['kind']}, which writes no text"
                    if text in steps
                    else "is unknown"
                )
                guess = (
                    "."
                    if text in steps
                    else suggestion(closest(text, writers)) or f"; {list_names(writers, 'text')}"
                )
                mistakes.append(f'steps.{name}: text "{text}" {why}{guess}')
        for model in step.models:
            if model in steps and model not in trainers:
                mistakes.append(f'steps.{name}: model "{model}" is a step that trains no model.')
            elif model not in steps and not (Path(model) / "config.json").is_file():
                guess = suggestion(closest(model, trainers)) or f"; {list_names(trainers, 'model')}"
                mistakes.append(f'steps.{name}: model "{model}" is no step and no run directory{guess}')
        mistakes += _wrong_tags(name, step, steps)
    return mistakes


def list_names(names: Iterable[str], what: str) -> str:
    """Return the end of a message that lists all known names."""
    return f"there are {', '.join(sorted(names))}." if names else f"the plan has no {what}."


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
