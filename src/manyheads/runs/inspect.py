"""Opens a run and looks inside: what one text does in it, or the model as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config, Task
from manyheads.errors import RunError, UsageError
from manyheads.inspection.documents import Inspection
from manyheads.model.transformer import Transformer
from manyheads.runs.curves import last_total_steps
from manyheads.tasks.classification import Classifier
from manyheads.tasks.inspecting import (
    InspectOptions,
    inspect_classification,
    inspect_language_model,
    inspect_model,
    inspect_translation,
)
from manyheads.tasks.language_modeling import Generator
from manyheads.tasks.translation import Translator

__all__ = ["Loaded", "inspect", "inspect_loaded", "load_for_inspection"]

Loaded = Translator | Classifier | Generator


def inspect(
    run: str | Path | Loaded,
    text: str | None = None,
    *,
    target: str | None = None,
    prefix: str | Sequence[int] = (),
    beam_size: int | None = None,
    rivals: int = 5,
    neighbours: int = 5,
    padding: int = 0,
    occlusion: bool = True,
    max_tokens: int = 0,
    device: str = "auto",
) -> Inspection:
    """What a text does inside a model; without a text, the model as a whole.

    Args:
        run: a run directory, or a model that is loaded.
        text: a sentence to translate, a text to classify or to read.
        target: see `InspectOptions`, as all that follow.
        prefix: see there.
        beam_size: see there.
        rivals: see there.
        neighbours: see there.
        padding: see there.
        occlusion: see there.
        max_tokens: see there.
        device: of a run: "cpu", "cuda", "cuda:1"; "auto" takes a GPU when there is one.

    Raises:
        RunError: there is no such run, or its task has nothing to inspect.
        UsageError: the text or an option does not fit.
    """
    loaded = load_for_inspection(Path(run), device) if isinstance(run, str | Path) else run
    name = Path(run).name if isinstance(run, str | Path) else ""
    if text is None:
        steps = last_total_steps(Path(run)) if isinstance(run, str | Path) else None
        return inspect_model(*parts_of(loaded), total_steps=steps, run=name)
    options = InspectOptions(
        target=target,
        prefix=prefix,
        beam_size=beam_size,
        rivals=rivals,
        neighbours=neighbours,
        padding=padding,
        occlusion=occlusion,
        max_tokens=max_tokens,
        run=name,
    )
    return inspect_loaded(loaded, text, options)


def inspect_loaded(loaded: Loaded, text: str, options: InspectOptions) -> Inspection:
    """What a text does inside a loaded model; raises `UsageError` as `inspect`."""
    if isinstance(loaded, Translator):
        return inspect_translation(loaded, text, options)
    if isinstance(loaded, Classifier):
        return inspect_classification(loaded, text, options)
    return inspect_language_model(loaded, text, options)


def load_for_inspection(run: Path, device: str = "auto") -> Loaded:
    """The model of a run, of whatever task.

    Raises:
        RunError: there is no such run, or its task has nothing to inspect.
    """
    task = RunDirectory.existing(run).config().task
    openers: dict[Task, Callable[..., Loaded]] = {
        "translation": Translator.load,
        "classification": Classifier.load,
        "language-modeling": Generator.load,
    }
    if task not in openers:
        raise RunError(
            f'{run} was trained for task = "{task}", and cannot be looked into by itself. '
            "Inspect a classifier that begins with it (model.init_from)."
        )
    return openers[task](run, device=device)


def parts_of(loaded: Loaded) -> tuple[Config, Transformer]:
    """Configuration and model."""
    if not isinstance(loaded, Translator | Classifier | Generator):
        raise UsageError("inspect takes a run directory, a Translator, a Classifier or a Generator.")
    return loaded.config, loaded.model
