"""Whether a training belongs to the run that a directory holds: its configuration and its corpus."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.errors import RunError
from manyheads.runs.corpus import Corpus

__all__ = ["check_same_corpus", "check_same_run"]

FREE_TO_CHANGE = {
    "data.root",
    "training.keep_checkpoints",
    "training.log_every",
    "training.save_every",
    "training.workers",
}


def check_same_run(run: RunDirectory, config: Config, force: bool) -> None:
    """Refuse a directory that holds something else, or a run of another configuration."""
    if run.exists:
        check_same_config(run.config(), config, force)
    else:
        refuse_foreign(run.path)


def refuse_foreign(out: Path) -> None:
    """Refuse a place that holds more than a beginning of ours that was interrupted."""
    ours = ("cache", "tokenizer.", "labels.json", "languages.json", "environment.json", ".")  # .lock, and drafts
    if out.exists() and not (out.is_dir() and all(path.name.startswith(ours) for path in out.iterdir())):
        raise RunError(f"{out} exists and is no run of manyheads. Choose another --out.")


def check_same_config(old: Config, new: Config, force: bool) -> None:
    """Refuse to go on with another configuration, and name what differs."""
    before, after = flat(old.model_dump()), flat(new.model_dump())
    parts = ("task", "data", "tokenizer", "model", "training")
    differing = [
        f"{key}: {before[key]!r} then, {after[key]!r} now"
        for key in before
        if before[key] != after[key] and key not in FREE_TO_CHANGE and key.partition(".")[0] in parts
    ]
    if differing and not force:
        raise RunError(
            f"this run was started with another configuration ({'; '.join(differing)}). "
            "Choose another --out, or go on anyway with --force."
        )


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{'a': {'b': 1}} -> {'a.b': 1}."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return found


def check_same_corpus(run: RunDirectory, corpus: Corpus, force: bool) -> None:
    """Refuse to go on with other text."""
    if run.exists and not force and run.environment().get("corpus_sha256") != corpus.sha256:
        raise RunError(
            "the corpus has changed since this run was started. Choose another --out, or go on anyway with --force."
        )
