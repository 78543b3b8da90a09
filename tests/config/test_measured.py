"""Measured scores by number of updates: interpolated, and valid only for the settings of the measurement."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from manyheads.config.load import (
    config_from_json,
    config_to_json,
    load_config,
    parse_config,
    recipe_paths,
    with_overrides,
)
from manyheads.config.schema import Config, MeasuredConfig
from manyheads.errors import ConfigError

TABLE: dict[str, Any] = {
    "updates": (100, 400, 1_600),
    "scores": (20.0, 36.0, 43.0),
    "processors": ("AVX2 fp32", "AVX2 fp32", "AVX-512 bf16"),
}
LIMITED = [name for name in recipe_paths() if load_config(recipe_paths()[name]).measured.updates]


def measured_config(**settings: Any) -> Config:
    """Return a configuration whose scores are valid for its settings and 1,000 pairs."""
    plain = parse_config({"data": {"source": "de", "target": "en"}, **settings}, origin="here")
    return plain.model_copy(update={"measured": MeasuredConfig(settings=plain.fingerprint, pairs=1_000, **TABLE)})


def test_scores_are_interpolated_linearly_in_the_logarithm_of_the_updates() -> None:
    measured = MeasuredConfig(**TABLE)
    assert [measured.score_after(updates) for updates in TABLE["updates"]] == list(TABLE["scores"])
    assert measured.score_after(200) == pytest.approx((20 + 36) / 2)
    assert measured.score_after(800) == pytest.approx((36 + 43) / 2)
    found = [measured.score_after(updates) or math.nan for updates in range(100, 1_601)]
    assert found == sorted(found)


@pytest.mark.parametrize("updates", [1, 99, 1_601, 10**6])
def test_scores_are_not_extrapolated(updates: int) -> None:
    assert MeasuredConfig(**TABLE).score_after(updates) is None
    assert MeasuredConfig().score_after(updates) is None


def test_the_summary_names_each_class_of_processor_once() -> None:
    assert MeasuredConfig(**TABLE).summary() == (
        "BLEU 20.0 after 100, 36.0 after 400 (AVX2 fp32), 43.0 after 1,600 updates (AVX-512 bf16)"
    )
    assert MeasuredConfig().summary() == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": [20.0, 36.0]}, "measured.updates holds 3 values, measured.scores 2 and"),
        ({"updates": [100, 100, 400]}, "measured.updates = [100, 100, 400] must rise"),
        ({"scores": [20.0, 43.0, 36.0]}, "measured.scores = [20.0, 43.0, 36.0] must not fall"),
        ({"scores": [20.0, 36.0, math.nan]}, "measured.scores = [20, 36, nan] is not a list, each a number at"),
        (
            {"updates": [0, 400, 1_600]},
            "measured.updates = [0, 400, 1600] is not a list, each a whole number above",
        ),
    ],
)
def test_an_inconsistent_table_of_scores_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config({"data": {"source": "de", "target": "en"}, "measured": TABLE | changes}, origin="here")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "override",
    [
        "data.root=elsewhere",
        "training.max_minutes=3",
        "training.steps=77",
        "training.seed=9",
        "training.precision=fp32",
        "training.device=cpu",
        "training.save_every=17",
        "training.valid_sentences=0",
        "training.workers=0",
    ],
)
def test_time_paths_and_device_leave_the_scores_valid(override: str) -> None:
    config = measured_config()
    assert with_overrides(config, [override]).expected(1_000) == config.measured


@pytest.mark.parametrize(
    "override",
    [
        "model.dropout=0.37",
        "model.d_model=64",
        "data.source=fr",
        "data.train=other",
        "data.limit=500",
        "data.test=other",
        "tokenizer.vocab_size=77",
        "training.learning_rate=0.5",
        "training.batch_tokens=77",
        "training.warmup_steps=7",
        "search.beam_size=1",
        "evaluation.protocol=moses-lowercase",
    ],
)
def test_any_other_changed_setting_invalidates_the_scores(override: str) -> None:
    assert with_overrides(measured_config(), [override]).expected(1_000) is None


def test_another_number_of_pairs_invalidates_the_scores() -> None:
    assert measured_config().expected(1_001) is None


def test_an_explicit_default_does_not_change_the_fingerprint() -> None:
    assert measured_config(model={"dropout": 0.1}).fingerprint == measured_config().fingerprint


def test_scores_survive_json_and_a_configuration_without_scores_has_no_section() -> None:
    config = measured_config()
    assert config_from_json(config_to_json(config), "here") == config
    plain = config.model_copy(update={"measured": MeasuredConfig()})
    assert "measured" not in config_to_json(plain)
    assert config_from_json(config_to_json(plain), "here") == plain


def test_there_are_recipes_with_scores() -> None:
    assert LIMITED


@pytest.mark.parametrize("name", LIMITED)
def test_the_scores_of_a_recipe_belong_to_its_current_settings(name: str) -> None:
    """Fails if a recipe was changed: measure again with benchmarks/quality.py --updates."""
    config = load_config(recipe_paths()[name])
    assert config.measured.settings == config.fingerprint
    assert config.expected(config.measured.pairs) is config.measured
    assert config.measured.signature.startswith("nrefs:1|")


@pytest.mark.parametrize("name", LIMITED)
def test_a_copy_of_a_recipe_has_its_scores_until_a_setting_is_changed(name: str, tmp_path: Path) -> None:
    text = recipe_paths()[name].read_text(encoding="utf-8")
    copy = tmp_path / "mine.toml"
    copy.write_text(text, encoding="utf-8")
    pairs = load_config(copy).measured.pairs
    assert load_config(copy).expected(pairs) is not None
    copy.write_text(text.replace("d_ff = 1024", "d_ff = 512"), encoding="utf-8")
    assert load_config(copy).expected(pairs) is None
