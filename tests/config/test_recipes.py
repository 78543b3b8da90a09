"""Recipes are found by name, and all are valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.config.load import load_config, recipe_paths, resolve_recipe
from manyheads.errors import UsageError

TRAINED = ("translation", "classification", "language-modeling", "masked-lm")


@pytest.mark.parametrize("name", sorted(recipe_paths()))
def test_every_recipe_is_valid(name: str) -> None:
    assert load_config(resolve_recipe(name)).task in TRAINED


def test_recipes_exist() -> None:
    assert recipe_paths()


def test_a_file_takes_precedence_over_a_recipe_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = next(iter(recipe_paths()))
    assert resolve_recipe(name) == recipe_paths()[name]
    Path(name).mkdir()
    assert resolve_recipe(name) == recipe_paths()[name]
    Path(name).rmdir()
    Path(name).write_text("", encoding="utf-8")
    assert resolve_recipe(name) == Path(name)


def test_an_error_on_an_unknown_recipe_suggests_the_nearest_name(tmp_path: Path) -> None:
    name = next(iter(recipe_paths()))
    with pytest.raises(UsageError, match=rf"no configuration file or recipe {name}x; did you mean .*{name}"):
        resolve_recipe(f"{name}x")
    with pytest.raises(UsageError, match=r"is a folder; name the \.toml file in it"):
        resolve_recipe(str(tmp_path))
    with pytest.raises(UsageError, match=r"no configuration file or recipe qqq; `manyheads recipes` lists"):
        resolve_recipe("qqq")


def test_an_error_on_a_missing_file_suggests_the_nearest_file(tmp_path: Path) -> None:
    for name in ("my-model.toml", "other.toml"):
        (tmp_path / name).write_text("", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        resolve_recipe(str(tmp_path / "my-modle.toml"))
    assert str(caught.value).endswith(f"; did you mean {tmp_path / 'my-model.toml'}?")
    name = next(iter(recipe_paths()))
    with pytest.raises(UsageError, match=rf"; did you mean {name}\?"):
        resolve_recipe(f"{name}.toml")
