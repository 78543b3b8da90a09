"""The description of a run on the page before an inspection; a server starts without charts and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bitext.languages import normal_form
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.errors import RunError
from manyheads.inference.languages import languages_of
from manyheads.text.languages import other_language
from manyheads.views.metrics import RunCurves, read_metrics


def describe(config: Config, name: str, *, examples: Sequence[str] = (), watched: bool = True) -> dict[str, Any]:
    """Return the basic data of a model for the page; `watched` says whether it can be inspected."""
    facts: dict[str, Any] = {"name": name, "task": config.spec.page, "examples": list(examples), "watched": watched}
    if config.spec.decodes:
        source, target = map(normal_form, config.languages)
        facts |= {"source": source, "target": target, "beam": config.search.beam_size}
    return facts


def direction_name(name: str, config: Config) -> str:
    """Return the name of one direction of a run of several languages, for the page."""
    return f"{name} {'-'.join(config.languages)}"


def describe_all(config: Config, name: str, run: Path) -> list[dict[str, Any]]:
    """Return the basic data of a run for the page, of each direction where it has several."""
    return [
        describe(view, f"{name} {direction}".rstrip(), examples=examples_of(run, view if direction else None))
        for direction, view in config.by_direction().items()
    ]


def examples_of(run: Path, config: Config | None = None) -> list[str]:
    """Return example sentences that the run itself holds.

    They come from its log, first those that it translated as the reference does, else from what was recorded when
    the training began. `config` is that of one direction, whose source language they have.

    Raises:
        RunError: a file of the run is damaged, or refused.
    """
    directory = RunDirectory(run)
    samples = read_metrics("", "", directory.log()).samples
    last = [sample for sample in samples if sample.step == samples[-1].step]
    last.sort(key=lambda sample: (sample.output != sample.reference, len(sample.source)))
    texts = [*dict.fromkeys(sample.source for sample in last)] or directory.recorded().get("examples", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RunError(f"{run / 'environment.json'} is damaged: its examples are no list of texts.")
    profiles = {} if config is None else languages_of(directory)
    return [text for text in texts if config is None or not other_language(text, config.data.source, profiles)]


def curves_of(path: Path, name: str) -> RunCurves:
    """Read the training curves of a run; raises as `inspect.curves`."""
    directory = RunDirectory.existing(path)
    lines = directory.log()
    if not lines:
        raise RunError(f"{path} has no {directory.metrics_path.name} yet. It is written from the first updates on.")
    return read_metrics(name, directory.config().task, lines)
