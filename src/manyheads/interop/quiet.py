"""Other libraries compute here without drawing on the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["without_bars"]


@contextmanager
def without_bars(transformers: Any) -> Iterator[None]:
    """While open, the library draws no progress bars; then it does as before."""
    logging = transformers.utils.logging
    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if drawn:
            logging.enable_progress_bar()
