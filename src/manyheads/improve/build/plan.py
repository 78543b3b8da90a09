"""Read a plan: its texts and steps, the order of the steps, and every mistake with the most similar name."""

from __future__ import annotations

import graphlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bitext.file_names import existing
from manyheads.config.load import parse_config, recipe_paths, resolve_data_root, resolve_file, resolve_recipe
from manyheads.config.load.mistakes import hint
from manyheads.config.load.toml import override, read_toml
from manyheads.config.schema import Config
from manyheads.errors import ConfigError, UsageError
from manyheads.improve.build.mistakes import parse_step, parse_table, wrong_names
from manyheads.improve.build.schema import CleanStep, ConvertStep, PlanFile, Step, TrainStep, as_names


@dataclass(frozen=True)
class Plan:
    """A plan without mistakes.

    Attributes:
        path: its file.
        source, target: languages of the translator.
        root: folder that the paths of files start from.
        text: file of each language of each text.
        steps: steps by name, each after the steps that it depends on.
        configs: configuration of each step that trains.
        out: folder of the products, one for each step.
    """

    path: Path
    source: str
    target: str
    root: Path
    text: Mapping[str, Mapping[str, Path]]
    steps: Mapping[str, Step]
    configs: Mapping[str, Config]
    out: Path

    def product(self, name: str) -> Path:
        """Return the folder of the product of a step."""
        return self.out / name

    def needed(self, name: str) -> list[str]:
        """Return the names of the steps whose products a step reads."""
        return _needed(self.steps, name)

    def model(self, name: str) -> Path:
        """Return the run directory of a step that trains, or of a path."""
        return self.product(name) if name in self.steps else Path(name)

    def files(self, name: str, languages: Sequence[str]) -> list[Path]:
        """Return the files of a text in these languages.

        Raises:
            UsageError: a table below [text] has no such language.
        """
        if name in self.steps:
            step = self.steps[name]
            stem = "train" if isinstance(step, CleanStep) else "text"
            packed = ".gz" if isinstance(step, CleanStep | ConvertStep) else ""
            return [self.product(name) / f"{stem}.{language}{packed}" for language in languages]
        for language in languages:
            if language not in self.text[name]:
                raise UsageError(
                    f"{self.path}: text.{name} has no {language}; it has {', '.join(self.text[name])}. Add "
                    f'{language} = "FILE".'
                )
        return [self.text[name][language] for language in languages]


def _needed(steps: Mapping[str, Step], name: str) -> list[str]:
    """Return the names of the steps that a step depends on."""
    return [needed for needed in dict.fromkeys((*steps[name].texts, *steps[name].models)) if needed in steps]


def plan_paths() -> dict[str, Path]:
    """Return the plans among the recipes by name."""
    return recipe_paths("recipes/plans")


def resolve_plan(name_or_path: str) -> Path:
    """Return the file of a path, or of the name of a plan; an existing file is preferred."""
    return resolve_file(name_or_path, plan_paths(), "plan", "plans")


def load_plan(path: Path, out: Path, overrides: Sequence[str] = ()) -> Plan:
    """Read a plan, with single settings replaced, such as `steps.teacher.training.steps=100`.

    A value is read as TOML, or as plain text if it is not TOML. The products go to `out`.

    Raises:
        ConfigError: the plan has mistakes; the message lists all of them.
        UsageError: a text lacks a language that a step needs.
    """
    values = read_toml(path)
    mistakes = [mistake for text in overrides if (mistake := _replace_value(values, text))]
    tables, wrong = parse_table(PlanFile, values, "")
    mistakes += wrong
    if tables is None:
        raise ConfigError(mistakes, origin=str(path))
    steps: dict[str, Step] = {}
    for name, table in tables.steps.items():
        step, wrong = parse_step(name, table, tables.text)
        mistakes += wrong
        if step is not None:
            steps[name] = step
    if not mistakes:
        mistakes = wrong_names(steps, tables.text)
    if mistakes:
        raise ConfigError(mistakes, origin=str(path))
    root = Path(tables.root)
    root = path.parent / root if f"{tables.root}/".startswith(("./", "../")) and tables.root != "." else root
    text = {
        name: {language: existing(root / file) or root / file for language, file in files.items()}
        for name, files in tables.text.items()
    }
    ordered = {name: steps[name] for name in _in_order(steps, path)}
    plan = Plan(path, tables.source, tables.target, root, text, ordered, {}, out.resolve())
    configs = {
        name: _train_config(plan, name, step) for name, step in ordered.items() if isinstance(step, TrainStep)
    }
    return replace(plan, configs=configs)


def _replace_value(values: dict[str, Any], text: str) -> str | None:
    """Set one `key.key=value` in nested tables; return a message if the text has another form."""
    table, name, *_ = [*(part.strip() for part in text.partition("=")[0].split(".")[:-1]), "", ""]
    known = values.get(table, {})
    if name and table in ("steps", "text") and isinstance(known, dict) and name not in known:
        return f"--set {text}: the plan has no {table}.{name}{hint(name, sorted(known))}"
    return override(values, text, form="steps.NAME.key=value", deepest=sys.maxsize)


def _in_order(steps: Mapping[str, Step], path: Path) -> list[str]:
    """Return the names of the steps, each after its dependencies, otherwise in the order of the file.

    Raises:
        ConfigError: steps depend on each other in a circle.
    """
    try:
        return list(graphlib.TopologicalSorter({name: _needed(steps, name) for name in steps}).static_order())
    except graphlib.CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise ConfigError([f"the steps depend on each other in a circle: {circle}."], origin=str(path)) from error


def _train_config(plan: Plan, name: str, step: TrainStep) -> Config:
    """Return the configuration of a step that trains; its text is given by absolute paths.

    Raises:
        ConfigError: the settings have mistakes, or there is no such recipe.
        UsageError: a text is not named.
    """
    origin = f"{plan.path}: steps.{name}"
    values: dict[str, Any] = {}
    if step.config is not None:
        try:
            base = resolve_recipe(step.config)
        except UsageError as error:
            raise ConfigError([f"config: {error}"], origin=origin) from error
        values = resolve_data_root(read_toml(base), base.parent)
    for section, settings in step.sections.items():
        values[section] = {**values.get(section, {}), **settings}
    data = {"source": plan.source, "target": plan.target, **values.get("data", {})}
    if step.text is not None:
        if step.valid is None:
            raise UsageError(f"{origin}.valid is missing: it names the validation text.")
        pair = (data["source"], data["target"])
        first, *more = [[str(file.absolute()) for file in plan.files(text, pair)] for text in as_names(step.text)]
        data = {key: value for key, value in data.items() if key not in ("dataset", "root", "test")}
        data |= {"train": first, "more": more}
        for split in ("valid", "test"):
            if vars(step)[split] is not None:
                data[split] = [str(file.absolute()) for file in plan.files(vars(step)[split], pair)]
    values["data"] = data
    if step.models:
        values["model"] = {**values.get("model", {}), "init_from": str(plan.model(step.models[0]).absolute())}
    return parse_config(values, origin=origin)
