"""The recipes that come with the package, by name."""

from __future__ import annotations

import importlib.resources
import os
from pathlib import Path

from manyheads.config.load.mistakes import closest, suggestion
from manyheads.errors import UsageError

__all__ = ["recipe_paths", "resolve_recipe"]


def recipe_paths() -> dict[str, Path]:
    """Return the TOML files of the recipes: in the installed package, or beside `src` in a checkout."""
    package = Path(str(importlib.resources.files("manyheads")))
    folders = [package / "recipes"]
    if package.parent.name == "src":
        folders.append(package.parent.parent / "recipes")
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}


def resolve_recipe(name_or_path: str) -> Path:
    """Return the file of a path, or of the name of a recipe; an existing file is preferred.

    Raises:
        UsageError: there is neither such a file nor such a recipe.
    """
    recipes = recipe_paths()
    if os.path.exists(name_or_path) and not os.path.isdir(name_or_path):
        return Path(name_or_path)
    if name_or_path in recipes:
        return recipes[name_or_path]
    if os.path.isdir(name_or_path):
        raise UsageError(f"{name_or_path} is a folder; name the .toml file in it.")
    guess = suggestion(closest(Path(name_or_path).stem, recipes))
    cure = guess or "; `manyheads recipes` lists the recipes."
    raise UsageError(f"no configuration file or recipe {name_or_path}{cure}")
