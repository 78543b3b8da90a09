"""What every model card tells."""

from __future__ import annotations

from manyheads.config.schema import DataConfig
from manyheads.training.progress import Progress

__all__ = ["best_value", "text_of"]


def text_of(data: DataConfig) -> str:
    """Where training text came from."""
    return data.dataset or (data.train if isinstance(data.train, str) else " and ".join(data.train))


def best_value(progress: Progress) -> str:
    """The best validation."""
    return "none" if progress.best is None else f"{abs(progress.best):.3f}"
