"""`recipes` and `show-config`."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import Call

from manyheads.cli.recipes import headline
from manyheads.config.load import json_schema, load_config, parse_config, recipe_paths, resolve_recipe
from manyheads.config.schema import Config
from manyheads.improve.build.plan import plan_paths

RECIPE = next(iter(recipe_paths()))


def test_every_recipe_is_listed_with_its_description(call: Call) -> None:
    listed = json.loads(call("recipes", "--json").out)
    assert [recipe["name"] for recipe in listed] == [*recipe_paths(), *plan_paths()]
    lines = call("recipes").out.split("\n")
    assert all(recipe["name"] in lines and recipe["description"] for recipe in listed)


def test_the_headline_is_the_first_sentence_and_the_measured_result() -> None:
    text = (
        "# German by Wu et al. (2021), of\n# two lines. More.\n#\n# Measured: BLEU 36.5\n# (greedy).\nx = 1\n# no"
    )
    assert headline(text) == {
        "description": "German by Wu et al. (2021), of two lines.",
        "measured": "BLEU 36.5 (greedy).",
    }
    assert headline("x = 1") == {"description": "", "measured": None}


@pytest.mark.parametrize("name", sorted(recipe_paths()))
def test_the_shown_configuration_loads_as_the_same_configuration(name: str, tmp_path: Path, call: Call) -> None:
    (tmp_path / "shown.toml").write_text(
        call("show-config", name, "--set", "training.clip_norm=none").out, encoding="utf-8"
    )
    expected = load_config(resolve_recipe(name), ["training.clip_norm=none"])
    assert load_config(tmp_path / "shown.toml") == expected


def test_each_setting_is_shown_with_its_meaning_and_whether_it_is_the_default(call: Call) -> None:
    (name, *_) = [name for name in recipe_paths() if load_config(resolve_recipe(name)).model.norm == "pre"]
    lines = call("show-config", name, "--set", "training.steps=777", "--set", "training.ema=0.0").out.split("\n")
    index = lines.index("steps = 777  # default: 8000")
    assert lines[index - 1] == "# number of optimiser updates"
    assert "ema = 0.0  # same as the default" in lines
    assert "#min_count = 1" in lines
    sections = [Config.model_fields[field].annotation for field in Config.model_fields if field != "task"]
    fields = [field for section in sections for field in section.model_fields.values()]  # type: ignore[union-attr]
    settings = 1 + sum(not field.internal for field in fields)
    assert sum(bool(re.match(r"#?[a-z_0-9]+ = ", line)) for line in lines) == settings


@pytest.mark.parametrize("name", sorted(recipe_paths()))
def test_a_setting_is_active_exactly_if_the_configuration_sets_it(name: str, call: Call) -> None:
    written = tomllib.loads(recipe_paths()[name].read_text(encoding="utf-8"))
    active = tomllib.loads(call("show-config", name).out)
    assert {section: settings for section, settings in active.items() if settings} == written


def test_a_default_is_changed_by_deleting_its_comment_sign(tmp_path: Path, call: Call) -> None:
    text = re.sub(r"^#(?=\S)", "", call("show-config").out, flags=re.MULTILINE)
    (tmp_path / "all.toml").write_text(text, encoding="utf-8")
    assert sum(len(settings) for settings in tomllib.loads(text).values() if isinstance(settings, dict)) > 80
    assert load_config(tmp_path / "all.toml") == parse_config(
        {"data": {"source": "de", "target": "en"}}, origin="x"
    )


def test_the_defaults_are_shown_without_a_configuration(call: Call) -> None:
    text = call("show-config").out
    assert "# default:" not in text
    assert "\n#steps = 8000\n" in text
    assert {"data": {"source": "de", "target": "en"}}.items() <= tomllib.loads(text).items()


def test_json_holds_the_values(call: Call) -> None:
    values = json.loads(call("show-config", RECIPE, "--json").out)
    assert values == load_config(resolve_recipe(RECIPE)).model_dump()


def test_the_schema_for_editors_is_one_document(call: Call) -> None:
    assert json.loads(call("show-config", "--schema").out) == json_schema()
