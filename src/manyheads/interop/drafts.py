"""A folder that is whole and checked, or not there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manyheads.checkpoint import saving
from manyheads.errors import RunError

__all__ = ["drafted"]


@contextmanager
def drafted(out: Path) -> Iterator[Path]:
    """A new folder under another name, which becomes `out` at the end, or goes when something fails.

    When `out` has the ending of the one file in it (``.argosmodel``), that file becomes `out`.

    Raises:
        RunError: there is something at `out`.
        SaveError: it could not be written.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise RunError(f"{out} exists. Choose another DIR, or remove it.")
    draft = out.with_name(f".{out.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        with saving(out.name, out.parent, "Free some space, or choose another place."):
            draft.mkdir(parents=True)
            yield draft
            if out.exists():
                out.rmdir()
            files = list(draft.iterdir())
            alone = len(files) == 1 and bool(out.suffix) and files[0].suffix == out.suffix
            (files[0] if alone else draft).rename(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
