"""The tasks, and the metric of each."""

from __future__ import annotations

from typing import Literal

__all__ = ["METRICS", "Task", "languages_needed"]

Task = Literal["translation", "classification", "language-modeling", "masked-lm"]
METRICS: dict[Task, tuple[str, ...]] = {  # what `training.metric` may be
    "translation": ("loss", "bleu", "chrf"),
    "classification": ("loss", "accuracy", "macro_f1"),
    "language-modeling": ("loss",),
    "masked-lm": ("loss",),
}


def languages_needed(task: Task) -> tuple[str, ...]:
    """Return the settings of `[data]` that name the languages of a task."""
    return ("source", "target") if task == "translation" else ("language",)
