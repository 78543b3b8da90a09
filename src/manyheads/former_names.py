"""Let names be imported from the module that held them in the last version; a warning names the new module."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def former_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that held names, by name -> their module below manyheads now."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = f"manyheads.{names[name]}"
        warnings.warn(
            f"{module}.{name} is now in {new}; the former place goes with the next version.",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(new), name)

    return get
