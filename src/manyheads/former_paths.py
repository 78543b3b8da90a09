"""Let the import paths of the last version work for one more, with a warning that names the new path."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_MOVED = {  # module, or package with all that it held -> its place; the longest name that fits counts
    "manyheads.data": "bitext",
    "manyheads.data.cleaning.corrections": "manyheads.data.corrections",
    "manyheads.data.languages": "bitext.scripts",
    "manyheads.languages": "bitext.languages",
    "manyheads.shell": "bitext.shell",
    "manyheads.unicode": "bitext.unicode",
}


def _new_path(name: str) -> str:
    """Return the present path of a module, its own if it was not moved."""
    former = max((old for old in _MOVED if f"{name}.".startswith(f"{old}.")), key=len, default=None)
    return _MOVED[former] + name.removeprefix(former) if former else name


class FormerPaths:
    """Find a moved module by its former path; the last finder of `sys.meta_path`, asked where all others fail."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import a module by its former path, None for any other name."""
        new = _new_path(name)
        try:
            found = None if new == name else importlib.util.find_spec(new)
        except ModuleNotFoundError:  # its package
            return None
        if found is None:
            return None
        # A package is empty: the others would find the modules of its folder a second time.
        package = found.submodule_search_locations is not None
        return ModuleSpec(name, self, is_package=package)  # type: ignore[arg-type]  # importlib.abc takes long to import

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system create the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the moved module in the place of the one that the import system created."""
        new = _new_path(module.__name__)
        if not hasattr(module, "__path__"):
            warnings.warn(
                f"{module.__name__} is now {new}; the former path goes with the next version.",
                FutureWarning,
                stacklevel=2,
            )
            sys.modules[module.__name__] = importlib.import_module(new)
