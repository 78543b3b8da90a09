"""The runs that are served, and what each of them can do."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from manyheads.checkpoint import RunDirectory
from manyheads.errors import RunError, UsageError
from manyheads.interop.ctranslate2 import is_export
from manyheads.runs.curves import last_total_steps
from manyheads.runs.inspect import Loaded, load_for_inspection
from manyheads.runs.page import described, example_of
from manyheads.serving.batching import Batcher
from manyheads.serving.detecting import Detector, detector_of
from manyheads.serving.engine import queued
from manyheads.serving.items import Ticket
from manyheads.serving.settings import ServeSettings
from manyheads.tasks.classification import Classifier
from manyheads.tasks.engine import TorchEngine
from manyheads.tasks.language_modeling import GenerateOptions, Generator
from manyheads.tasks.options import TranslateOptions
from manyheads.tasks.translation import Translator
from manyheads.training.precision import pick_device

__all__ = ["Models", "Opened", "check_runs", "load_models", "make_batcher"]

Pair = tuple[str, str]
MOST_WORKERS = 8
LESS_URGENT = 5  # steps of "nice": beside another busy thread, a quarter of a core is left to a worker


@dataclass(eq=False)
class Opened:
    """A run that is served, as the page looks at it.

    Attributes:
        name: by which the page chooses it; no other has it.
        folder: the run directory, or the exported folder.
        loaded: what computes.
        description: see `described`.
        watched: what is looked into, where that is not what computes; opened when it is first asked for.
        document: of the model as a whole, when it has been asked for.
    """

    name: str
    folder: Path
    loaded: Loaded
    description: dict[str, Any]
    watched: Loaded | None = None
    document: dict[str, Any] | None = None

    def model(self) -> Loaded:
        """What can be looked into: the model in PyTorch.

        Raises:
            RunError: the folder holds an export, and no run.
        """
        if not isinstance(self.loaded, Translator) or isinstance(self.loaded.engine, TorchEngine):
            return self.loaded
        if self.watched is None:
            self.watched = load_for_inspection(self.folder, "cpu")
        return self.watched

    def total_steps(self) -> int | None:
        """How many updates its training was to have, if it has told."""
        return last_total_steps(self.folder)


@dataclass
class Models:
    """What is served.

    Attributes:
        opened: all runs by their names, in the order in which they were given.
        translators: by (source, target).
        classifiers, generators: by the name of their run.
        detector: tells the languages of the translators apart.
    """

    opened: dict[str, Opened] = field(default_factory=dict)
    translators: dict[Pair, Translator] = field(default_factory=dict)
    classifiers: dict[str, Classifier] = field(default_factory=dict)
    generators: dict[str, Generator] = field(default_factory=dict)
    detector: Detector = field(default_factory=Detector)

    @property
    def languages(self) -> list[str]:
        """All of the translators, those that can be translated from first."""
        sources, targets = (dict.fromkeys(pair[side] for pair in self.translators) for side in (0, 1))
        return list(sources | targets)

    def targets(self, source: str) -> list[str]:
        """What a language can be translated into; itself too, as LibreTranslate lists it."""
        return sorted({target for one, target in self.translators if one == source} | {source})


def check_runs(runs: Sequence[Path], engine: str) -> None:
    """Raise `RunError` where a run is missing; asked before anything is loaded."""
    if not runs:
        raise UsageError("there is nothing to serve. Give at least one run.")
    for run in runs:
        if not (engine == "ctranslate2" and is_export(run)):
            RunDirectory.existing(run)


def load_models(
    runs: Sequence[Path], settings: ServeSettings, batcher: Batcher, tell: Callable[[str], None]
) -> Models:
    """Open all runs and use each of them once, so that the first request finds everything ready.

    Raises:
        RunError: a run cannot be opened, or is of a kind that is not served.
        UsageError: two runs do the same.
    """
    models = Models()
    for run in runs:
        task = "translation" if is_export(run) else RunDirectory.existing(run).config().task
        loaded: Loaded
        if task == "translation":
            loaded = add_translator(models, run, settings)
        elif task == "classification":
            loaded = Classifier.load(run, device=settings.device)
            models.classifiers[new_name(run, models.classifiers)] = loaded
        elif task == "language-modeling":
            loaded = Generator.load(run, device=settings.device)
            models.generators[new_name(run, models.generators)] = loaded
        else:
            raise RunError(f'{run} was trained for task = "{task}", which is a beginning for others, not to serve.')
        open_for_the_page(models, run, loaded)
    models.detector = detector_of(runs, models.languages, tell)
    warm_up(models, batcher)
    return models


def open_for_the_page(models: Models, run: Path, loaded: Loaded) -> None:
    """Let the page know of a run, by the name of its folder, or that with a number behind it."""
    folder = run.resolve()
    name = folder.name
    for number in range(2, len(models.opened) + 3):
        if name not in models.opened:
            break
        name = f"{folder.name}-{number}"
    watched = not is_export(run)
    description = described(loaded.config, name, example=example_of(run) if watched else "", watched=watched)
    models.opened[name] = Opened(name, folder, loaded, description)


def add_translator(models: Models, run: Path, settings: ServeSettings) -> Translator:
    """Open a translator and put it where its languages say."""
    translator = Translator.load(run, device=settings.device, engine=settings.engine, precision=settings.precision)
    pair = (translator.config.data.source, translator.config.data.target)
    if pair in models.translators:
        raise UsageError(f"{run} translates {pair[0]}-{pair[1]}, and so does a run before it. Serve one of them.")
    models.translators[pair] = translator
    return translator


def new_name(run: Path, others: dict[str, object] | dict[str, Classifier] | dict[str, Generator]) -> str:
    """The name of a run's folder, by which clients choose it."""
    name = run.resolve().name
    if name in others:
        raise UsageError(f"two runs are named {name}. Clients choose by that name: give one folder another.")
    return name


def warm_up(models: Models, batcher: Batcher) -> None:
    """Use every model once in every way that costs more the first time."""
    for translator in models.translators.values():
        ready = queued(translator, batcher, Ticket())
        for alignment in (False, True):
            ready.translate(["a b c."] * 2 * len(batcher.threads), options=TranslateOptions(alignment=alignment))
    for classifier in models.classifiers.values():
        classifier.classify(["a b c"])
    for generator in models.generators.values():
        generator.generate(["a"], GenerateOptions(max_tokens=2))


def make_batcher(settings: ServeSettings) -> Batcher:
    """The queue, and as many workers as there are cores, each with one thread; of a GPU or CTranslate2, one."""
    cores = torch.get_num_threads()
    alone = settings.engine == "ctranslate2" or pick_device(settings.device).type != "cpu"
    workers = 1 if alone else min(cores, os.cpu_count() or 1, MOST_WORKERS)
    return Batcher(
        workers=workers,
        max_tokens=settings.max_batch_tokens,
        max_wait=settings.max_wait_ms / 1000,
        begin=lambda: begin_worker(max(1, cores // workers)),
    )


def begin_worker(threads: int) -> None:
    """Compute with so many threads from now on; where the system can do that, after those that talk to clients.

    What they have to do is short, and a refusal would wait as long as a sentence is decoded.
    """
    torch.set_num_threads(threads)
    if sys.platform == "linux":  # where a priority is a thread's own
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + LESS_URGENT))
