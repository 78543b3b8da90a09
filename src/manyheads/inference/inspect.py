"""Open runs and inspect them: on one text, without a text, or by their training curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema.tasks import model_class_of
from manyheads.errors import RunError, UsageError
from manyheads.inference.about import curves_of
from manyheads.inference.classifier import Classifier
from manyheads.inference.generator import Generator
from manyheads.inference.inspect_options import InspectOptions
from manyheads.inference.torch_parts import torch_module
from manyheads.inference.translation.translator import Translator
from manyheads.reports import NO_LISTENER, Listener
from manyheads.views.curves import Curves
from manyheads.views.documents import Inspection, ModelInspection
from manyheads.views.metrics import read_metrics

Loaded = Translator | Classifier | Generator
_DEFAULTS = InspectOptions()


def inspect(
    run: str | Path | Loaded,
    text: str | None = None,
    options: InspectOptions = _DEFAULTS,
    *,
    languages: tuple[str, str] = ("", ""),
    device: str = "auto",
    listener: Listener = NO_LISTENER,
) -> Inspection:
    """Inspect the computation of a model for a text; without a text, inspect the model itself.

    `run` is a run directory or a loaded model, `text` a sentence to translate, or a text to classify or to read.
    `languages` are source and target of a translator of several languages; "" leaves out the choice.
    `device` is for a run directory: "cpu", "cuda", "cuda:1"; "auto" is a GPU if there is one. `listener` receives
    the progress.

    Raises:
        RunError: there is no such run, or its task has nothing to inspect.
        UsageError: the text or an option is not valid for this model.
    """
    path = Path(run) if isinstance(run, str | Path) else None
    loaded = load_for_inspection(Path(run), device) if isinstance(run, str | Path) else run
    name = RunDirectory(path).name if path else ""
    if isinstance(loaded, Translator) and any(languages):
        source, target = languages
        loaded = loaded.to(source=source, target=target)
    if text is None:
        if not isinstance(loaded, Loaded):
            raise UsageError("inspect takes a run directory, a Translator, a Classifier or a Generator.")
        return inspect_weights(loaded, path, name)
    with listener.phase("inspecting, also without each word" if options.occlusion else "inspecting"):
        return inspect_loaded(loaded, text, replace(options, run=name))


def inspect_loaded(loaded: Loaded, text: str, options: InspectOptions) -> Inspection:
    """Inspect a loaded model; raise `UsageError` as `inspect` does."""
    inspection: Inspection = torch_module("inspect", "Inspection").inspect_loaded(loaded, text, options)
    return inspection


def inspect_weights(loaded: Loaded, run: Path | None, name: str) -> ModelInspection:
    """Inspect a model without a text; `run` is its directory, `name` its name in the result."""
    inspect_model = torch_module("inspect_model", "Inspection").inspect_model
    steps = read_metrics("", "", RunDirectory(run).log()).total_steps if run else 0
    inspection: ModelInspection = inspect_model(loaded.config, loaded.model, total_steps=steps or None, run=name)
    return inspection


def load_for_inspection(run: Path, device: str = "auto") -> Loaded:
    """Load the model of a run of any task.

    Raises:
        RunError: there is no such run, or its task has nothing to inspect.
    """
    config = RunDirectory.existing(run).config()
    if not config.spec.command:
        raise RunError(
            f'{run} was trained for task = "{config.task}", and cannot be inspected by itself. '
            "Inspect a classifier that starts from it (model.init_from)."
        )
    loaded: Loaded = model_class_of(config.task).load(run, device=device)
    return loaded


def curves(runs: Sequence[str | Path]) -> Curves:
    """Read the training curves of runs, also of one that is still training.

    Raises:
        RunError: a directory is missing, not a run, or has no log yet.
        UsageError: no run is given.
    """
    if isinstance(runs, str | Path) or not runs:
        raise UsageError("curves takes a list of run directories.")
    paths = [Path(run) for run in runs]
    return Curves(tuple(map(curves_of, paths, _names_of(paths))))


def _names_of(paths: Sequence[Path]) -> list[str]:
    """Return a name for each run: its folder, or the full path if two folders have the same name."""
    short = [RunDirectory(path).name for path in paths]
    return [name if short.count(name) == 1 else str(path) for name, path in zip(short, paths, strict=True)]
