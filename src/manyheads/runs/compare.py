"""Score two runs, or a run and its export, on the same text, and test if the difference is more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitext.file_names import Split
from bitext.shell import command_line
from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.bundle import is_export
from manyheads.config.load import with_overrides
from manyheads.config.schema import Config
from manyheads.errors import RunError, UsageError
from manyheads.evaluation import BootstrapResult
from manyheads.evaluation.verdicts import METRIC_NAMES, judge_comparison
from manyheads.inference.translation.directions import with_direction
from manyheads.inference.translation.translator import Translator
from manyheads.interop.argos import opened_package
from manyheads.interop.ctranslate2.convert import load_ctranslate2
from manyheads.reports import NO_LISTENER, Listener
from manyheads.results import Result
from manyheads.runs.import_model import is_ctranslate2
from manyheads.training.registry import task_of
from manyheads.training.scored_text import ScoredText


@dataclass(frozen=True)
class Comparison(Result):
    """Scores of two runs on the same text, with the significance of the difference.

    Attributes:
        run, other: run directories or exports.
        results: paired bootstrap of each metric, `run` against `other`.
        text: name and size of the text, and for translators the search of each run.
        empty: sentences on lines without text.
    """

    run: Path
    other: Path
    results: tuple[BootstrapResult, ...]
    text: str
    empty: tuple[str, ...] = ()

    def figures(self) -> dict[str, Any]:
        """Return the names of both and of the text, and the results by metric."""
        results = {result.metric: result for result in self.results}
        return {"run": self.run, "other": self.other, "text": self.text, **results}

    def verdict(self) -> list[str]:
        """Return which run is better, or the number of lines that would decide it."""
        return [*self.empty, *judge_comparison(str(self.run), str(self.other), self.results)]

    def report(self) -> list[str]:
        """Return a line for each metric, below the names."""
        return [f"{self.run} against {self.other}", self.text, *map(_describe, self.results)]


def _describe(result: BootstrapResult) -> str:
    low, high = result.interval
    significant = "significant" if result.significant else "not significant"
    return (
        f"{METRIC_NAMES[result.metric]} {result.score:.2f} against {result.baseline:.2f}: {result.difference:+.2f} "
        f"[{low:+.2f}, {high:+.2f}], p = {result.p_value:.3f}, {significant} "
        f"(paired bootstrap, {result.samples} samples{f'; {result.signature}' if result.signature else ''})"
    )


@contextmanager
def _opened(path: Path, device: str) -> Iterator[tuple[Config, Any]]:
    """Yield the configuration and the model of a run, or of its export for CTranslate2 or Argos."""
    if not is_ctranslate2(path):
        config = RunDirectory.existing(path).config()
        yield config, task_of(config).load(path, device)
        return
    with opened_package(path) as (folder, _):
        if not is_export(folder):
            command = command_line("manyheads", "import", path)
            raise RunError(f"{path} is no export of manyheads. Import it, and compare with the run: {command}")
        metadata, engine = load_ctranslate2(folder, device=device)
        yield metadata.config, Translator(metadata.config, metadata.tokenizers, engine)


def compare(
    run: Path,
    other: Path,
    *,
    split: Split = "test",
    source: Path | None = None,
    reference: Path | None = None,
    languages: tuple[str, str] = ("", ""),
    overrides: Sequence[str] = (),
    device: str = "auto",
    listener: Listener = NO_LISTENER,
) -> Comparison:
    """Evaluate two runs on the same text and test the difference by paired bootstrap (Koehn 2004).

    The text is the text of `run`. Translations are scored with the defaults of sacreBLEU; `evaluation.protocol` is
    ignored. CTranslate2 computes a translator that was exported for it or for Argos.

    Raises:
        RunError, DataError, ConfigError: see the message.
        UsageError: the runs have different tasks, or a task that cannot be compared.
    """
    with _opened(run, device) as (config, model), _opened(other, device) as (other_config, other_model):
        configs, names, task = [config, other_config], [config.task, other_config.task], task_of(config)
        if names[0] != names[1] or not task.scores_outputs:
            raise UsageError(
                f"{run} is a run of {names[0]}, {other} of {names[1]}. Compare two translators or two classifiers."
            )
        changed = [with_overrides(with_direction(config, *languages), overrides) for config in configs]
        scored = ScoredText(split, source, reference).pairs(changed[0])
        found = task.compare([model, other_model], changed, scored, listener)
    text = f"{source or f'data.{split}'}: {found.description}"
    return Comparison(run, other, found.results, text, found.empty)
