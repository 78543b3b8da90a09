"""Configurations: reading, overrides, and error messages that list every mistake with advice."""

from __future__ import annotations

import json
import math
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from manyheads.config.load import (
    config_from_json,
    config_to_json,
    load_config,
    parse_config,
    with_overrides,
)
from manyheads.config.load.mistakes import _known_settings, optional_settings
from manyheads.config.load.toml import to_toml
from manyheads.config.schema import Config
from manyheads.errors import ConfigError

LANGUAGES = '[data]\nsource = "de"\ntarget = "en"\n'


def write_config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "some.toml"
    path.write_text(text, encoding="utf-8")
    return path


def mistakes(tmp_path: Path, text: str, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(write_config(tmp_path, text), overrides)
    return caught.value.mistakes


def mistakes_of(values: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(values, origin="here")
    return caught.value.mistakes


def mistake(section: str, **settings: Any) -> str:
    values: dict[str, Any] = {"data": {"source": "de", "target": "en"}}
    values.setdefault(section, {}).update(settings)
    (only,) = mistakes_of(values)
    return only


def test_numbers_of_a_file_are_converted_to_the_types_of_their_settings(tmp_path: Path) -> None:
    config = load_config(
        write_config(
            tmp_path,
            LANGUAGES + "[training]\nsteps = 8_000\nwarmup_steps = 1e3\nlearning_rate = 2e-3\nweight_decay = 1\n"
            'betas = [0.9, 0.98]\nclip_norm = "none"\nlog_every = 0x10\n',
        )
    )
    training = config.training
    assert (training.steps, training.warmup_steps, training.learning_rate) == (8000, 1000, 0.002)
    assert (training.betas, training.clip_norm, training.log_every) == ((0.9, 0.98), None, 16)
    assert [type(value) for value in (training.warmup_steps, training.weight_decay)] == [int, float]


def test_the_language_codes_no_and_nan_are_text(tmp_path: Path) -> None:
    path = write_config(tmp_path, '[data]\nsource = "no"\ntarget = "nan"\n')
    assert (load_config(path).data.source, load_config(path).data.target) == ("no", "nan")
    replaced = load_config(path, ["data.source=nan", "data.target=no"])
    assert (replaced.data.source, replaced.data.target) == ("nan", "no")


def test_a_byte_order_mark_and_crlf_change_nothing(tmp_path: Path) -> None:
    plain = load_config(write_config(tmp_path, LANGUAGES))
    (tmp_path / "windows.toml").write_bytes(b"\xef\xbb\xbf" + LANGUAGES.replace("\n", "\r\n").encode())
    assert load_config(tmp_path / "windows.toml") == plain


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("data.root=/x/y", "data", "root", "/x/y"),
        ("data.root = a=b", "data", "root", "a=b"),
        ("model.norm=post", "model", "norm", "post"),
        ('model.norm="post"', "model", "norm", "post"),
        ("training.max_minutes=20", "training", "max_minutes", 20.0),
        ("training.learning_rate=1e-4", "training", "learning_rate", 1e-4),
        ("training.steps=1e4", "training", "steps", 10_000),
        ('data.train=["a","b"]', "data", "train", ["a", "b"]),
        ("training.clip_norm=none", "training", "clip_norm", None),
        ("model.tied_embeddings=none", "model", "tied_embeddings", "none"),
        ("tokenizer.lowercase=true", "tokenizer", "lowercase", True),
        ("training.device=cuda:1", "training", "device", "cuda:1"),
        ("data.root='a'\ntarget = 3", "data", "root", "'a'\ntarget = 3"),
    ],
)
def test_an_override_replaces_one_setting(
    tmp_path: Path, override: str, section: str, key: str, value: object
) -> None:
    config = load_config(write_config(tmp_path, LANGUAGES), [override])
    assert config.model_dump()[section][key] == value
    before = load_config(write_config(tmp_path, LANGUAGES)).model_dump()
    changed = {name for name, settings in config.model_dump().items() if settings != before[name]}
    assert changed == {section}


def test_the_last_of_several_overrides_counts(tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path, LANGUAGES), ["training.seed=2", "training.seed=3"])
    assert config.training.seed == 3


@pytest.mark.parametrize(
    ("length", "overrides", "expected"),
    [
        ("epochs = 3\n", ["training.steps=7"], (7, None)),
        ("epochs = 3\n", ["training.steps=7", "training.epochs=none"], (7, None)),
        ("steps = 9\nepochs = 3\n", ["training.steps=7"], (7, None)),
        ("steps = 9\n", ["training.epochs=3"], (9, 3)),
        ("", ["training.steps=7"], (7, None)),
    ],
)
def test_an_override_of_steps_or_epochs_replaces_the_other(
    tmp_path: Path, length: str, overrides: list[str], expected: tuple[int, int | None]
) -> None:
    """Epochs of a recipe would silently take precedence over steps of the user."""
    training = load_config(write_config(tmp_path, LANGUAGES + f"[training]\n{length}"), overrides).training
    assert (training.steps, training.epochs) == expected


def test_overrides_of_both_steps_and_epochs_are_refused(tmp_path: Path) -> None:
    (mistake,) = mistakes(tmp_path, LANGUAGES, "training.steps=7", "training.epochs=3")
    assert mistake.startswith("--set training.steps=7 and --set training.epochs=3 ask for two lengths of training.")


def test_one_error_lists_all_mistakes(tmp_path: Path) -> None:
    text = (
        'beam_size = 3\n[data]\nsource = "de"\n[model]\nd_model = 500\nnum_heads = 7\nbeam_size = 4\n'
        'norm = "poste"\n[training]\nsteps = "many"\nlearning_rte = 0.1\n[serch]\nx = 1\n'
    )
    found = mistakes(tmp_path, text, "model.dropout=1.5", "nothing", "a.b.c=1", "search=5")
    assert found[:2] == [
        "--set nothing is not of the form section.key=value.",
        "--set a.b.c=1 is not of the form section.key=value.",
    ]
    assert set(found[2:]) == {
        "unknown key beam_size; did you mean search.beam_size?",
        "data.target is missing: target language, such as en.",
        "model.d_model = 500 is not divisible by model.num_heads = 7. Use d_model = 497 or 504.",
        "unknown key model.beam_size; did you mean search.beam_size?",
        'model.norm = "poste" is not "pre" or "post"; did you mean "post"?',
        "model.dropout = 1.5 is not a number at least 0 and below 1.",
        'training.steps = "many" is not a whole number above 0.',
        "unknown key training.learning_rte; did you mean training.learning_rate?",
        "unknown section [serch]; did you mean [search]?",
        "search = 5 is no section; write [search], and its settings below it.",
    }
    assert len(found) == 12


def test_the_message_names_the_file_and_the_overrides(tmp_path: Path) -> None:
    path = write_config(tmp_path, LANGUAGES)
    with pytest.raises(ConfigError, match=r"^.*some\.toml with --set: training\.steps = 0 is not") as caught:
        load_config(path, ["training.steps=0"])
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("section", "settings", "message"),
    [
        ("training", {"steps": True}, "training.steps = true is not a whole number above 0."),
        ("training", {"steps": 1.5}, "training.steps = 1.5 is not a whole number above 0."),
        ("training", {"steps": "12"}, 'training.steps = "12" is not a whole number above 0.'),
        ("training", {"seed": -1}, "training.seed = -1 is not a whole number at least 0."),
        ("training", {"learning_rate": 0}, "training.learning_rate = 0 is not a number above 0."),
        ("training", {"clip_norm": float("inf")}, "training.clip_norm = inf is not finite; write a number."),
        ("training", {"patience": 0}, 'training.patience = 0 is not a whole number above 0 or "none".'),
        ("tokenizer", {"joint": "yes"}, 'tokenizer.joint = "yes" is not true or false.'),
        ("tokenizer", {"joint": 1}, "tokenizer.joint = 1 is not true or false."),
        ("model", {"d_model": None}, 'model.d_model = "none" is not a whole number above 0.'),
        ("data", {"root": 5}, "data.root = 5 is not text."),
        ("data", {"source": "e!"}, 'data.source = "e!" is not a language code such as de or pt-BR.'),
        ("data", {"train": [1, "b"]}, 'data.train = [1, "b"] is not text or a list of 2, each text.'),
        (
            "training",
            {"betas": [0.9, 1.0]},
            "training.betas = [0.9, 1] is not a list of 2, each a number at least 0 and below 1.",
        ),
        ("training", {"betas": [0.9]}, "training.betas = [0.9] is not a list of 2, each a number at least 0 and"),
        ("tokenizer", {"kind": {"a": 1}}, "tokenizer.kind = {a = 1} is not"),
        ("data", {"more": 5}, "data.more = 5 is not a list, each text or a list of 2, each text."),
        ("data", {"weights": "x"}, 'data.weights = "x" is not a list, each a number at least 0 or "none".'),
    ],
)
def test_a_wrong_value_is_named_with_the_expected_values(
    section: str, settings: dict[str, Any], message: str
) -> None:
    assert mistake(section, **settings).startswith(message)


@pytest.mark.parametrize(
    ("section", "settings", "advice"),
    [
        ("training", {"learning_rte": 1}, "did you mean training.learning_rate?"),
        ("training", {"Label-Smoothing": 1}, "did you mean training.label_smoothing?"),
        ("training", {"batch_size": 1}, "did you mean training.batch_tokens or training.batch_sentences?"),
        ("model", {"beam_size": 1}, "did you mean search.beam_size?"),
        ("model", {"batch_tokens": 1}, "did you mean training.batch_tokens or search.batch_tokens?"),
        ("model", {"n_heads": 1}, "did you mean model.num_heads?"),
        ("search", {"warmup_step": 1}, "did you mean training.warmup_steps?"),
        # that the default d_model does not fit 7 heads is not reported
        ("model", {"d_modl": 511, "num_heads": 7}, "did you mean model.d_model?"),
        ("model", {"zzz": 1}, "`manyheads show-config` lists all settings."),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_name_also_from_another_section(
    section: str, settings: dict[str, int], advice: str
) -> None:
    assert mistake(section, **settings) == f"unknown key {section}.{next(iter(settings))}; {advice}"


@pytest.mark.parametrize(
    ("values", "needed"), [({}, "source and target"), ({"task": "classification"}, "language")]
)
def test_an_empty_configuration_names_the_section_it_needs(values: dict[str, str], needed: str) -> None:
    with pytest.raises(ConfigError, match=rf"^here: section \[data\] is missing; it needs {needed}\.$"):
        parse_config(values, origin="here")


@pytest.mark.parametrize(
    ("task", "data", "expected"),
    [
        ("translation", {}, ["data.source is missing: source language, such as de", "data.target is missing"]),
        ("translation", {"source": "de"}, ["data.target is missing: target language, such as en."]),
        (
            "translation",
            {"source": "de", "target": "en", "language": "fr"},
            ['data.language = "fr" has no meaning for task = "translation". Give data.source and data.target.'],
        ),
        ("classification", {}, ["data.language is missing: language of the text, such as en"]),
        (
            "classification",
            {"source": "de", "target": "en", "language": "fr"},
            [
                'data.source = "de" has no meaning for task = "classification". Give data.language.',
                'data.target = "en" has no meaning',
            ],
        ),
        ("masked-lm", {"target": "en"}, ["data.language is missing", 'data.target = "en" has no meaning']),
        ("classificaton", {"language": "en"}, ['task = "classificaton" is not "translation" or "classification"']),
    ],
)
def test_each_task_names_its_own_languages(task: str, data: dict[str, str], expected: list[str]) -> None:
    mistakes = mistakes_of({"task": task, "data": data})
    assert len(mistakes) == len(expected)
    for message in expected:
        assert any(found.startswith(message) for found in mistakes), mistakes


@pytest.mark.parametrize(
    ("task", "section", "settings", "message"),
    [
        ("classification", "training", {"metric": "bleu"}, "Use loss or accuracy or macro_f1."),
        ("translation", "training", {"metric": "accuracy"}, "Use loss or bleu or chrf."),
        ("masked-lm", "training", {"metric": "accuracy"}, "Use loss."),
        ("classification", "training", {"r_drop": 1.0}, "training.r_drop is for pairs of sentences"),
        ("translation", "data", {"valid": 0.1}, "data.valid = 0.1 is a share, and a translator needs pairs"),
        ("classification", "data", {"valid": 1.5}, "data.valid = 1.5 is not text"),
    ],
)
def test_a_setting_that_does_not_apply_to_a_task_is_refused(
    task: str, section: str, settings: dict[str, Any], message: str
) -> None:
    languages = {"source": "de", "target": "en"} if task == "translation" else {"language": "en"}
    values: dict[str, Any] = {"task": task, "data": languages}
    values[section] = values.get(section, {}) | settings
    (only,) = mistakes_of(values)
    assert message in only


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("norm = post", '^PATH, line 5, column .*; write norm = "post".$'),
        ("root = /data/x  # there", '^PATH, line 5, column .*; write root = "/data/x".$'),
        ("bias = True", "^PATH, line 5, column .*; write bias = true.$"),
        (r'root = "C:\Users\me"', r"^PATH, line 5, column .*or with forward slashes: root = 'C:\\Users\\me'.$"),
        (
            r'train = ["C:\proj\a", "b"]',
            r"""^PATH, line 5, column .*or with forward slashes: train = \['C:\\proj\\a', "b"\].$""",
        ),
        ("d_model 5", "^PATH, line 5, column .* in `d_model 5`.$"),
        ("a = " + "[" * 100_000, "PATH"),
        ("a = " + "9" * 5_000, "PATH"),
        ('a = "', "PATH"),
        ("[a]\n[a]", "PATH"),
        ("# Stra\udcdfe", r"PATH, line 5: byte \d+ \(0xdf\) is no UTF-8"),
    ],
    ids=lambda value: value[:20],
)
def test_a_file_that_cannot_be_read_is_named_with_line_and_advice(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "some.toml"
    path.write_bytes(f"{LANGUAGES}[model]\n{line}\n".encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=message.replace("PATH", re.escape(str(path)))):
        load_config(path)
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read: No such file"):
        load_config(tmp_path / "none.toml")


def test_overrides_of_a_loaded_configuration_report_every_mistake() -> None:
    changed = with_overrides(example_config(), ["search.beam_size=1", "data.root=/x"])
    assert (changed.search.beam_size, changed.data.root, changed.data.train) == (1, "/x", ("a.ko", "a.en"))
    assert with_overrides(example_config(), []) == example_config()
    with pytest.raises(ConfigError) as caught:
        with_overrides(example_config(), ["x", "search.beam=1", "training.steps=0"])
    assert len(caught.value.mistakes) == 3


def example_config() -> Config:
    return parse_config(
        {
            "data": {"source": "ko", "target": "en", "root": '자료/"x"', "train": ["a.ko", "a.en"]},
            "training": {"clip_norm": None, "epsilon": 1e-9},
        },
        origin="example",
    )


def test_a_configuration_survives_json() -> None:
    assert config_from_json(config_to_json(example_config()), "config.json") == example_config()


def test_a_valid_configuration_is_read_without_its_json_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    text = config_to_json(example_config())
    monkeypatch.setattr("manyheads.config.load.mistakes._known_settings", None)
    assert config_from_json(text, "config.json") == example_config()


def test_optional_settings_are_those_whose_json_schema_allows_null() -> None:
    assert optional_settings() == {
        (section, key)
        for section, settings in _known_settings().items()
        for key, schema in settings.items()
        if {"type": "null"} in schema.get("anyOf", ())
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, r"^run/config\.json: format 2 is newer than this program; this manyheads reads up to 1\."),
        ({"format": True}, "has no format number"),
        ({"format": "1"}, "has no format number"),
        ({"format": 0}, "has no format number"),
        ({"model": {"d_modl": 3}}, r"did you mean model\.d_model"),
    ],
)
def test_json_of_another_format_or_with_mistakes_is_refused(change: dict[str, Any], message: str) -> None:
    values = json.loads(config_to_json(example_config())) | change
    with pytest.raises(ConfigError, match=message):
        config_from_json(json.dumps(values), "run/config.json")


def test_a_run_of_an_earlier_version_opens_unless_outputs_depend_on_a_setting_that_is_gone() -> None:
    values = json.loads(config_to_json(example_config()))
    former = {"training": {"unfreeze_every": 7}, "model": {"layer_dropout": 0.3}, "search": {"coverage_penalty": 0}}
    old = {name: section | former.get(name, {}) if name in former else section for name, section in values.items()}
    assert config_from_json(json.dumps({**old, "measured": {}}), "run/config.json") == example_config()
    old["data"]["augment"] = {"case": 0.06}
    assert config_from_json(json.dumps(old), "run/config.json").data.augment == 1
    old["search"]["coverage_penalty"] = 0.2
    with pytest.raises(ConfigError, match=r"^run/config\.json: unknown key search\.coverage_penalty; "):
        config_from_json(json.dumps(old), "run/config.json")


def test_settings_that_only_the_program_sets_are_unknown_in_a_file_and_in_set_and_stay_in_a_run(
    tmp_path: Path,
) -> None:
    found = mistakes(tmp_path, LANGUAGES + '[model]\npooler = "relu"\n', "model.token_types=2")
    assert [mistake.partition(";")[0] for mistake in found] == [
        "unknown key model.pooler", "unknown key model.token_types"
    ]  # fmt: skip
    imported = Config.model_validate({"data": {"source": "de", "target": "en"}, "model": {"token_types": 2}})
    assert with_overrides(imported, ["search.beam_size=3"]).model.token_types == 2


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000, '"format"', "3"])
def test_json_that_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^run/config\.json: this is no "):
        config_from_json(text, "run/config.json")


@pytest.mark.parametrize("value", [True, 3, 1e-9, 'a "b"\\\n\x7f가', (1, "x"), None])
def test_a_value_written_as_toml_is_read_back(tmp_path: Path, value: object) -> None:
    read = tomllib.loads(f"value = {to_toml(value)}")["value"]
    assert read == ("none" if value is None else list(value) if isinstance(value, tuple) else value)


# --- several languages ---

EN_DE = {"source": "en", "target": "de"}


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"data": {"pairs": [EN_DE], "source": "en"}}, 'data.source = "en" is for one pair of languages'),
        ({"data": {"pairs": [{"source": "en", "target": "EN"}]}}, '"en" and "EN" are no two languages'),
        ({"data": {"pairs": [EN_DE, EN_DE]}}, "en-de occurs twice"),
        ({"data": {"pairs": [EN_DE | {"both": True}, {"source": "de", "target": "en"}]}}, "de-en occurs twice"),
        (
            {"data": {"pairs": [EN_DE | {"test": "t.tsv"}, {"source": "en", "target": "fr", "test": "t.tsv"}]}},
            "de-en and en-fr have the same test files",
        ),
        ({"data": {"pairs": [EN_DE], "weights": [1]}}, "data.weights is for one pair of languages"),
        ({"data": {"pairs": [EN_DE], "augment": 1}}, "data.augment is for one pair of languages"),
        ({"data": {"pairs": [EN_DE], "terms": 0.5}}, "data.terms is for one pair of languages"),
        ({"data": {"source": "en", "target": "de", "temperature": 2}}, "data.temperature is for data.pairs"),
        ({"data": {"pairs": [EN_DE], "temperature": -1}}, "data.temperature = -1 is not a number above 0"),
        (
            {"data": {"pairs": [EN_DE | {"wieght": 2}]}},
            "unknown key data.pairs: wieght of pair 1; did you mean weight?",
        ),
        ({"data": {"pairs": [{"source": "en"}]}}, "data.pairs: target of pair 1 is missing"),
        ({"data": {"pairs": [EN_DE]}, "tokenizer": {"joint": False}}, "data.pairs share one vocabulary"),
        ({"data": {"pairs": [EN_DE]}, "tokenizer": {"kind": "words"}}, 'data.pairs need tokenizer.kind = "bpe"'),
        ({"data": {"pairs": [EN_DE]}, "task": "classification"}, 'data.pairs are for task = "translation"'),
        (
            {"data": {"pairs": [EN_DE]}, "training": {"stages": [{"weights": [1]}]}},
            "training.stages are for one pair of languages",
        ),
    ],
)
def test_a_mistake_in_the_pairs_of_languages_is_named(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config(sections, origin="x")
    assert message in str(raised.value)
    assert len(raised.value.mistakes) == 1


def test_pairs_of_languages_survive_json_and_may_share_the_name_of_a_split() -> None:
    pairs = [EN_DE | {"both": True, "test": "test", "weight": 2}, {"source": "en", "target": "fr", "test": "test"}]
    config = parse_config({"data": {"pairs": pairs, "temperature": 5}}, origin="x")
    assert config.directions == [("en", "de"), ("de", "en"), ("en", "fr")]
    assert config.languages == ("en+de", "de+en+fr")
    assert config_from_json(config_to_json(config), "x") == config


JSON_VALUES: list[Any] = [
    None, True, 0, -1.5, 10**400, math.inf, math.nan, "", "\x1b[2J", "\ud800", [], [0], [[]], [{}], {}, {"a": 0},
]  # fmt: skip


@pytest.mark.parametrize("value", JSON_VALUES, ids=lambda value: repr(value)[:12])
def test_a_stored_configuration_with_any_json_value_in_any_place_is_read_or_refused_by_name(value: Any) -> None:
    stored = json.loads(config_to_json(example_config()))
    for section, settings in stored.items():
        changes = [{**settings, key: value} for key in settings] if isinstance(settings, dict) else []
        for changed in [value, *changes]:
            with suppress(ConfigError):
                config_from_json(json.dumps({**stored, section: changed}), "run/config.json")


@pytest.mark.parametrize("value", [None, False, 0, 1.5, "x", [], [0]], ids=repr)
def test_a_section_of_a_stored_configuration_that_is_none_is_refused_by_name(value: Any) -> None:
    stored = json.loads(config_to_json(example_config()))
    for section in stored.keys() - {"format", "task"}:
        message = rf"run/config\.json: {section} = .* is no section; write \[{section}\]"
        with pytest.raises(ConfigError, match=message):
            config_from_json(json.dumps({**stored, section: value}), "run/config.json")


def test_a_task_that_is_a_table_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"task = \{\} is not \"translation\" or "):
        load_config(write_config(tmp_path, "task = {}\n"))


def test_a_configuration_is_read_from_a_path_that_is_text(tmp_path: Path) -> None:
    path = write_config(tmp_path, LANGUAGES)
    assert load_config(str(path)) == load_config(path)
