"""The served runs: loading, lookup by language pair or name, language detection, and warm-up."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from types import ModuleType
from typing import Any

from bitext.languages import libretranslate_code, match_language, normal_form, script_of
from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import TASKS
from manyheads.config.schema.tasks import model_class_of
from manyheads.errors import RunError, UsageError, is_installed, require
from manyheads.inference.about import describe, direction_name, examples_of
from manyheads.inference.classifier import Classifier
from manyheads.inference.generator import GenerateOptions, Generator
from manyheads.inference.languages import languages_of
from manyheads.inference.native.build import library, why_none
from manyheads.inference.native_engine import is_cpu
from manyheads.inference.threads import limit_threads, num_threads
from manyheads.inference.translation.translator import Translator
from manyheads.processors import available_processors
from manyheads.search.options import SearchOptions
from manyheads.serving.batching import Batcher
from manyheads.serving.glossary import set_glossary
from manyheads.serving.pivots import Pair, find_pivots
from manyheads.serving.queue_items import RequestHandle
from manyheads.serving.queued_engine import queued_translator
from manyheads.serving.settings import ServeSettings
from manyheads.text.languages import LanguageProfile, confidences

Loaded = Translator | Classifier | Generator
LanguageConfidence = tuple[str, float]  # language code, confidence in percent
_MAX_WORKERS = 8
_WORKER_NICENESS = 5  # increment of "nice": beside another busy thread, a worker keeps a quarter of a core

_INSPECTING = {"inspect": "manyheads.inference.inspect", "page": "manyheads.web.html_page"}


@dataclass(frozen=True)
class LanguageDetector:
    """Detects languages by character n-gram profiles of the runs' training texts.

    Attributes:
        profiles: profiles by language code.
        fallback: language returned with confidence 0 where no language can be detected.
    """

    profiles: Mapping[str, LanguageProfile] = field(default_factory=dict)
    fallback: str = "en"

    def detect(self, text: str) -> Sequence[LanguageConfidence]:
        """Return languages with their confidence, the most probable first; at least one."""
        shares = confidences(text, self.profiles)
        percents = [(language, round(100 * share, 1)) for language, share in shares]
        return [(language, percent) for language, percent in percents if percent > 0] or [(self.fallback, 0.0)]


def inspecting(name: str) -> ModuleType:
    """Import a module that inspects models, whose charts a server without inspections does not load."""
    return require(_INSPECTING[name], purpose="Inspection")


@dataclass(eq=False)
class ServedRun:
    """A served run, as the page inspects it.

    Attributes:
        name: unique name by which the page chooses the run.
        folder: the run directory.
        loaded: the model that computes.
        description: see `manyheads.inference.about.describe`.
    """

    name: str
    folder: Path
    loaded: Loaded
    description: dict[str, Any]

    @cached_property
    def document(self) -> dict[str, Any]:
        """The tensors, position encodings, schedule, code and card of the model, for the page."""
        inspection = inspecting("inspect").inspect_weights(self.loaded, self.folder, self.name)
        document: dict[str, Any] = inspecting("page").model_document(inspection, RunDirectory(self.folder).card())
        return document


@dataclass
class Models:
    """All served models.

    Attributes:
        runs: all runs by name, in the order of the command line.
        translators: translators by (source, target).
        pivots: for each direction that two translators offer one after the other, their languages.
        classifiers, generators: models by the name of their run.
        detector: detects the languages of the translators.
    """

    runs: dict[str, ServedRun] = field(default_factory=dict)
    translators: dict[Pair, Translator] = field(default_factory=dict)
    pivots: dict[Pair, tuple[Pair, Pair]] = field(default_factory=dict)
    classifiers: dict[str, Classifier] = field(default_factory=dict)
    generators: dict[str, Generator] = field(default_factory=dict)
    detector: LanguageDetector = field(default_factory=LanguageDetector)

    @property
    def languages(self) -> list[str]:
        """Return the codes of all languages of the translators, source languages first."""
        sources, targets = (dict.fromkeys(pair[side] for pair in self.translators) for side in (0, 1))
        return list(sources | targets)

    def pair(self, source: str, target: str) -> Pair | None:
        """Return the languages of the translator or the pivot for two codes; None if there is none."""
        if (source, target) in self.translators:
            return source, target
        served = [*self.translators, *self.pivots]
        to_target = [pair for pair in served if match_language(target, pair[1:])]
        found = match_language(source, [pair[0] for pair in to_target])
        return next((pair for pair in to_target if pair[0] == found), None)

    def targets(self, source: str) -> list[str]:
        """Return the target languages of a source language, and the language itself, as LibreTranslate lists it."""
        served = [*self.translators, *self.pivots]
        return sorted({target for first, target in served if first == source} | {source})

    def route(self, pair: Pair) -> list[Translator]:
        """Return the translators of a direction, in order: one, or two with a pivot language between them."""
        return [self.translators[step] for step in self.pivots.get(pair, (pair,))]

    def via(self, source: str) -> dict[str, str]:
        """Return the pivot language of each target that a source language has only by way of one."""
        return {pair[1]: first[1] for pair, (first, _) in self.pivots.items() if pair[0] == source}

    def add(self, run: Path, loaded: Loaded, name: str = "") -> None:
        """Add a run, or each direction of a translator of several languages.

        For the page it has the given name, by default that of its folder, with a number appended if that name is
        taken.

        Raises:
            UsageError: another run has the same language pair, or the same task and name.
        """
        folder = run.resolve()
        if isinstance(loaded, Translator) and loaded.config.multilingual:
            for source, target in loaded.config.directions:
                direction = loaded.to(source=source, target=target)
                self.add(run, direction, direction_name(folder.name, direction.config))
            return
        if isinstance(loaded, Translator):
            pair = (loaded.config.data.source, loaded.config.data.target)
            if any([*map(normal_form, served)] == [*map(normal_form, pair)] for served in self.translators):
                raise UsageError(
                    f"{run} translates {pair[0]}-{pair[1]}, and so does a run before it. Serve one of them."
                )
            self.translators[pair] = loaded
        elif folder.name in (self.classifiers if isinstance(loaded, Classifier) else self.generators):
            raise UsageError(
                f"two runs are named {folder.name}. Clients choose by that name: give one folder another."
            )
        elif isinstance(loaded, Classifier):
            self.classifiers[folder.name] = loaded
        else:
            self.generators[folder.name] = loaded
        name = name or folder.name
        names = chain([name], (f"{name}-{number}" for number in count(2)))
        name = next(name for name in names if name not in self.runs)
        config = loaded.config if isinstance(loaded, Translator) and loaded.prefix else None
        watched, examples = is_installed("torch"), examples_of(run, config)
        description = describe(loaded.config, name, examples=examples, watched=watched)
        self.runs[name] = ServedRun(name, folder, loaded, description)


def load_models(
    runs: Sequence[Path], settings: ServeSettings, batcher: Batcher, log: Callable[[str], None]
) -> Models:
    """Load all runs and use each once, so that the first request is as fast as later ones."""
    if (settings.engine, settings.precision) == ("auto", "int8") and library() is None:
        log(f"int8 is computed in C alone, and there is no C code ({why_none()}): translating in float32")
        settings = replace(settings, precision="fp32")
    models = Models()
    for run in runs:
        models.add(run, _load_model(run, settings))
    if settings.glossary is not None:
        set_glossary(models.translators, settings.glossary)
    models.pivots = find_pivots(models.translators)
    models.detector = _make_detector(models, log)
    _warm_up(models, batcher)
    return models


def _load_model(run: Path, settings: ServeSettings) -> Loaded:
    """Load the model of a run."""
    task = RunDirectory.existing(run).config().task
    if not TASKS[task].command:
        raise RunError(f'{run} was trained for task = "{task}", which is a beginning for others, not to serve.')
    loaded: Loaded = model_class_of(task).load_to_serve(
        run, settings.device, engine=settings.engine, precision=settings.precision, beam=settings.beam
    )
    return loaded


def _make_detector(models: Models, log: Callable[[str], None]) -> LanguageDetector:
    """Return a detector of the translators' languages; counts of a language in several runs are added up.

    `log` gets a warning where a language has no profile.
    """
    first: dict[Pair, str] = {}  # the first code of each language
    for language in models.languages:
        first.setdefault((libretranslate_code(language), script_of(language)), language)
    languages = list(first.values())
    counts: dict[str, Counter[str]] = {language: Counter() for language in languages}
    translators = [run for run in models.runs.values() if isinstance(run.loaded, Translator)]
    for folder in dict.fromkeys(run.folder for run in translators):  # once for all directions of a run
        for language, profile in languages_of(RunDirectory(folder)).items():
            counts[first[libretranslate_code(language), script_of(language)]].update(profile.counts)
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


def _warm_up(models: Models, batcher: Batcher) -> None:
    """Run each model once in every mode whose first call is slower."""
    for translator in models.translators.values():
        queued = queued_translator(translator, batcher, RequestHandle())
        for alignment in (False, True):
            queued.translate(["a b c."] * 2 * len(batcher.threads), options=SearchOptions(alignment=alignment))
    for classifier in models.classifiers.values():
        classifier.classify(["a b c"])
    for generator in models.generators.values():
        generator.generate(["a"], GenerateOptions(max_tokens=2))


def make_batcher(settings: ServeSettings) -> Batcher:
    """Return the queue with one single-threaded worker per core; with one worker for a GPU."""
    cores = num_threads()
    on_cpu = settings.engine == "native" or is_cpu(settings.device)
    workers = min(cores, available_processors(), _MAX_WORKERS) if on_cpu else 1
    return Batcher(
        workers=workers,
        max_tokens=settings.max_batch_tokens,
        max_wait=settings.max_wait_ms / 1000,
        on_worker_start=lambda: _start_worker(max(1, cores // workers)),
    )


def _start_worker(threads: int) -> None:
    """Set the number of threads of this worker; on Linux, lower its priority below that of the event loop.

    The event loop's work is short, but without this an error response would wait until a sentence is decoded.
    """
    limit_threads(threads)
    if sys.platform == "linux":  # where each thread has its own priority
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + _WORKER_NICENESS))
