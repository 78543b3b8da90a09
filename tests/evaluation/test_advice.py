"""Settings that an advice names are new to the configuration, allowed there, and have an effect."""

from __future__ import annotations

import pytest

from manyheads.config.load import parse_config, with_overrides
from manyheads.config.schema import Config
from manyheads.evaluation.advice import _SETTINGS, settings_to_try

CONFIG = parse_config({"data": {"source": "de", "target": "en"}}, origin="test")


def changed(*overrides: str) -> Config:
    return with_overrides(CONFIG, overrides)


CONFIGS = [
    CONFIG,
    changed("search.beam_size=1", "data.drop_overlap=false", "data.drop_duplicates=false", "data.limit=9"),
    changed("training.max_minutes=5", "search.length_penalty=2"),
    changed("training.epochs=3", "tokenizer.kind=words", "tokenizer.min_count=2", "training.batch_sentences=8"),
]


@pytest.mark.parametrize("name", _SETTINGS)
def test_a_setting_can_be_typed_and_changes_the_configuration(name: str) -> None:
    for config in CONFIGS:
        for assignment in settings_to_try(name, config):
            assert with_overrides(config, [assignment]) != config


@pytest.mark.parametrize(
    ("name", "override", "setting"),
    [
        ("over-fitting", "model.dropout=0.3", "model.dropout"),
        ("over-fitting", "model.dropout=0.5", "model.dropout"),
        ("over-fitting", "training.patience=9", "training.patience"),
        ("over-fitting", "data.limit=none", "data.limit"),
        ("updates-skipped", "training.precision=fp32", "training.precision"),
        ("too-short", "search.beam_size=1", "search."),
        ("too-long", "search.beam_size=1", "search."),
        ("nothing-said", "search.beam_size=1", "search."),
        ("repeats-itself", "search.no_repeat_ngram=3", "search."),
        ("class-never-said", "training.class_weights=balanced", "training.class_weights"),
        ("much-duplicated", "data.drop_duplicates=true", "data."),
        ("held-out-in-train", "data.drop_overlap=true", "data."),
        ("under-fitting", "training.max_minutes=5", "training.steps"),
        ("takes-days", "training.max_minutes=5", "training.max_minutes"),
        ("single words", "data.augment=0.1", "data."),
        ("capitals", "search.lower_capitals=true", "search."),
        ("URLs", "search.copy_literals=true", "search."),
    ],
)
def test_a_setting_that_the_configuration_has_is_not_advised(name: str, override: str, setting: str) -> None:
    assert not [text for text in settings_to_try(name, changed(override)) if text.startswith(setting)]


@pytest.mark.parametrize(
    ("name", "override", "setting"),
    [
        ("over-fitting", "data.limit=100", "data.limit = none"),
        ("over-fitting", "model.dropout=0.1", "model.dropout = 0.3"),
        ("under-fitting", "training.max_minutes=5", "training.max_minutes = 10"),
        ("under-fitting", "training.epochs=4", "training.epochs = 8"),
        ("memory", "training.accumulation=4", "training.accumulation = 8"),
        ("too-long", "search.length_penalty=3", "search.length_penalty = 1"),
        ("single words", "data.augment=none", "data.augment = 0.5"),
        ("URLs", "search.copy_literals=false", "search.copy_literals = true"),
        ("never-ends", "search.max_length_ratio=3", "search.max_length_ratio = 6"),
    ],
)
def test_a_setting_follows_the_value_of_the_configuration(name: str, override: str, setting: str) -> None:
    assert setting in settings_to_try(name, changed(override))
