"""Run notebooks from top to bottom without Jupyter: `python -m tests.docs.notebooks NOTEBOOK...`."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["BRIEF", "notebook", "run"]

# A minute of training and the search that follows, cut down to a trial.
LESS = (
    "training.steps=2",
    "training.valid_sentences=0",
    "data.limit=300",
    "model.d_model=32",
    "search.max_length_ratio=0.2",
    "search.max_length_offset=1",
)
BRIEF = {'["training.steps=360"]': repr(list(LESS))}


def notebook(path: Path) -> Any:
    """A notebook as JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def run(path: Path, quick: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run the code of a notebook in the current directory; returns its names.

    Args:
        path: of the notebook.
        quick: pieces of code and what stands for them, for a run that is only a trial.

    Raises:
        AssertionError: a piece of `quick` is not in the notebook.
    """
    code = ["".join(cell["source"]) for cell in notebook(path)["cells"] if cell["cell_type"] == "code"]
    for piece, other in (quick or {}).items():
        assert any(piece in cell for cell in code), f"{path} does not hold {piece!r}"
        code = [cell.replace(piece, other) for cell in code]
    module = ModuleType("__notebook__")
    sys.modules["__notebook__"] = module
    for number, cell in enumerate(code, 1):
        exec(compile(cell, f"{path.stem}, code {number}", "exec"), vars(module))
    return vars(module)


def main() -> None:
    """Run notebooks in one folder, so that one can go on with the run of another."""
    paths = sorted((Path(name).resolve() for name in sys.argv[1:]), key=lambda path: path.stem == "look-inside")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for path in paths:
            start = time.perf_counter()
            run(path)
            print(f"{path.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
