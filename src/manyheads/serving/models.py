"""The served runs: loading, lookup by language pair or name, language detection, and warm-up."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from manyheads.checkpoint import RunDirectory
from manyheads.decoding.engine import TorchEngine
from manyheads.decoding.native.engine import NativeEngine
from manyheads.errors import RunError, UsageError
from manyheads.interop.bundle import is_export
from manyheads.runs.corpus import languages_of
from manyheads.runs.inspect import Loaded, last_total_steps, load_for_inspection
from manyheads.runs.page import described, example_of
from manyheads.serving.batching import Batcher
from manyheads.serving.queue_items import RequestHandle
from manyheads.serving.queued_engine import queued_translator
from manyheads.serving.settings import ServeSettings
from manyheads.tasks.classification import Classifier
from manyheads.tasks.language_modeling import GenerateOptions, Generator
from manyheads.tasks.options import TranslateOptions
from manyheads.tasks.translation import Translator
from manyheads.text.languages import LanguageProfile, confidences, has_letters
from manyheads.training.precision import pick_device

__all__ = ["LanguageConfidence", "Models", "ServedRun", "check_runs", "load_models", "make_batcher"]

Pair = tuple[str, str]
LanguageConfidence = tuple[str, float]  # language code, confidence in percent
MAX_WORKERS = 8
WORKER_NICENESS = 5  # increment of "nice": beside another busy thread, a worker keeps a quarter of a core


class LanguageDetector:
    """Detects languages by character n-gram profiles of the runs' training texts.

    Attributes:
        profiles: by language code.
        fallback: language returned with confidence 0 where no language can be detected.
    """

    def __init__(self, profiles: Mapping[str, LanguageProfile] | None = None, fallback: str = "en") -> None:
        self.profiles = profiles or {}
        self.fallback = fallback

    def detect(self, text: str) -> Sequence[LanguageConfidence]:
        """Return languages with their confidence, the most probable first; at least one."""
        shares = confidences(text, self.profiles) if has_letters(text) else []
        percents = [(language, round(100 * share, 1)) for language, share in shares]
        return [(language, percent) for language, percent in percents if percent > 0] or [(self.fallback, 0.0)]


@dataclass(eq=False)
class ServedRun:
    """A served run, as the page inspects it.

    Attributes:
        name: unique name by which the page chooses the run.
        folder: the run directory, or the exported folder.
        loaded: the model that computes.
        description: see `manyheads.runs.page.described`.
        inspectable: the model in PyTorch where `loaded` is an export; loaded at the first inspection.
        document: cached description of the model's tensors and code; made at the first request.
    """

    name: str
    folder: Path
    loaded: Loaded
    description: dict[str, Any]
    inspectable: Loaded | None = None
    document: dict[str, Any] | None = None

    def torch_model(self) -> Loaded:
        """Return the model in PyTorch, which can be inspected.

        Raises:
            RunError: the folder holds an export, and no run.
        """
        if not isinstance(self.loaded, Translator) or isinstance(self.loaded.engine, (TorchEngine, NativeEngine)):
            return self.loaded
        if self.inspectable is None:
            self.inspectable = load_for_inspection(self.folder, "cpu")
        return self.inspectable

    def total_steps(self) -> int | None:
        """Return the planned number of updates of the training, or None if it is not known."""
        return last_total_steps(self.folder)


@dataclass
class Models:
    """All served models.

    Attributes:
        runs: all runs by name, in the order of the command line.
        translators: by (source, target).
        classifiers, generators: by the name of their run.
        detector: detects the languages of the translators.
    """

    runs: dict[str, ServedRun] = field(default_factory=dict)
    translators: dict[Pair, Translator] = field(default_factory=dict)
    classifiers: dict[str, Classifier] = field(default_factory=dict)
    generators: dict[str, Generator] = field(default_factory=dict)
    detector: LanguageDetector = field(default_factory=LanguageDetector)

    @property
    def languages(self) -> list[str]:
        """Return the codes of all languages of the translators, source languages first."""
        sources, targets = (dict.fromkeys(pair[side] for pair in self.translators) for side in (0, 1))
        return list(sources | targets)

    def targets(self, source: str) -> list[str]:
        """Return the target languages of a source language, and itself, as LibreTranslate lists it."""
        return sorted({target for other, target in self.translators if other == source} | {source})


def check_runs(runs: Sequence[Path], engine: str) -> None:
    """Check that all runs exist, before any is loaded.

    Raises:
        UsageError: no run was given.
        RunError: a run is missing.
    """
    if not runs:
        raise UsageError("there is nothing to serve. Give at least one run.")
    for run in runs:
        if not (engine == "ctranslate2" and is_export(run)):
            RunDirectory.existing(run)


def load_models(
    runs: Sequence[Path], settings: ServeSettings, batcher: Batcher, log: Callable[[str], None]
) -> Models:
    """Load all runs and use each once, so that the first request is as fast as later ones.

    Raises:
        RunError: a run cannot be opened, or is of a task that is not served.
        UsageError: two runs have the same language pair or name.
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
        add_run(models, run, loaded)
    models.detector = make_detector(runs, models.languages, log)
    warm_up(models, batcher)
    return models


def add_run(models: Models, run: Path, loaded: Loaded) -> None:
    """Add a run for the page, named as its folder, with a number appended where that name is taken."""
    folder = run.resolve()
    name = folder.name
    for number in range(2, len(models.runs) + 3):
        if name not in models.runs:
            break
        name = f"{folder.name}-{number}"
    is_run = not is_export(run)
    description = described(loaded.config, name, example=example_of(run) if is_run else "", watched=is_run)
    models.runs[name] = ServedRun(name, folder, loaded, description)


def add_translator(models: Models, run: Path, settings: ServeSettings) -> Translator:
    """Load a translator and add it under its language pair."""
    translator = Translator.load(run, device=settings.device, engine=settings.engine, precision=settings.precision)
    pair = (translator.config.data.source, translator.config.data.target)
    if pair in models.translators:
        raise UsageError(f"{run} translates {pair[0]}-{pair[1]}, and so does a run before it. Serve one of them.")
    models.translators[pair] = translator
    return translator


def new_name(run: Path, others: dict[str, object] | dict[str, Classifier] | dict[str, Generator]) -> str:
    """Return the name of a run's folder, by which clients choose the model.

    Raises:
        UsageError: another run has this name.
    """
    name = run.resolve().name
    if name in others:
        raise UsageError(f"two runs are named {name}. Clients choose by that name: give one folder another.")
    return name


def make_detector(runs: Sequence[Path], languages: Sequence[str], log: Callable[[str], None]) -> LanguageDetector:
    """Return a detector for the languages of some runs; counts of a language in several runs are added up.

    Args:
        runs: run directories; exported folders are skipped, as they have no profile.
        languages: codes of the served languages.
        log: gets a warning where a language has no profile.
    """
    counts: dict[str, Counter[str]] = {language: Counter() for language in languages}
    for run in runs:
        if is_export(run) or RunDirectory.existing(run).config().task != "translation":
            continue
        for language, profile in languages_of(RunDirectory(run)).items():
            counts[language].update(profile.counts)
    profiles = {language: LanguageProfile(grams) for language, grams in counts.items() if grams}
    missing = [language for language in languages if language not in profiles]
    if missing:
        log(
            f"languages cannot be detected: no run says what {', '.join(missing)} looks like (it was made by an "
            "older version, or elsewhere). Clients that ask for source = auto get the first language, confidence 0."
        )
        profiles = {}
    fallback = "en" if "en" in languages or not languages else languages[0]
    return LanguageDetector(profiles, fallback)


def warm_up(models: Models, batcher: Batcher) -> None:
    """Run each model once in each way whose first call is slower."""
    for translator in models.translators.values():
        queued = queued_translator(translator, batcher, RequestHandle())
        for alignment in (False, True):
            queued.translate(["a b c."] * 2 * len(batcher.threads), options=TranslateOptions(alignment=alignment))
    for classifier in models.classifiers.values():
        classifier.classify(["a b c"])
    for generator in models.generators.values():
        generator.generate(["a"], GenerateOptions(max_tokens=2))


def make_batcher(settings: ServeSettings) -> Batcher:
    """Return the queue with one single-threaded worker per core; with one worker for a GPU or CTranslate2."""
    cores = torch.get_num_threads()
    one_worker = settings.engine == "ctranslate2" or pick_device(settings.device).type != "cpu"
    workers = 1 if one_worker else min(cores, os.cpu_count() or 1, MAX_WORKERS)
    return Batcher(
        workers=workers,
        max_tokens=settings.max_batch_tokens,
        max_wait=settings.max_wait_ms / 1000,
        on_worker_start=lambda: start_worker(max(1, cores // workers)),
    )


def start_worker(threads: int) -> None:
    """Set the number of PyTorch threads of this worker; on Linux, lower its priority below that of the event loop.

    The event loop's work is short, but without this an error response would wait until a sentence is decoded.
    """
    torch.set_num_threads(threads)
    if sys.platform == "linux":  # where each thread has its own priority
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + WORKER_NICENESS))
