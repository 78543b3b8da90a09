"""`recipes`, `init` and `show-config`."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from manyheads.cli.main import run
from manyheads.cli.recipes import headline
from manyheads.config.load import json_schema, load_config, parse_config, recipe_paths, resolve_recipe
from manyheads.config.schema import Config
from manyheads.runs.suggest import SIZES, suggest

RECIPE = next(iter(recipe_paths()))


def test_every_recipe_is_listed_with_what_it_trains(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recipes", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [recipe["name"] for recipe in listed] == list(recipe_paths())
    assert run(["recipes"]) == 0
    lines = capsys.readouterr().out.split("\n")
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


def test_init_copies_a_recipe_word_for_word_under_the_name_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["init", "new/swahili", "--from", RECIPE]) == 0
    assert Path("new/swahili/swahili.toml").read_bytes() == recipe_paths()[RECIPE].read_bytes()
    assert "manyheads train new/swahili/swahili.toml" in capsys.readouterr().out
    Path("here").mkdir()
    monkeypatch.chdir("here")
    assert run(["init", ".", "--from", "../new/swahili/swahili.toml"]) == 0
    assert Path("here.toml").is_file()


MEASURED = """
[measured]
pairs = 1
settings = "{settings}"
updates = [100, 400]
scores = [20.0, 36.0]
processors = ["AVX2 fp32", "AVX-512 bf16"]
"""
SCORES = "BLEU 20.0 after 100 (AVX2 fp32), 36.0 after 400 updates (AVX-512 bf16)"


def test_scores_by_number_of_updates_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["recipes", "--json"]) == 0
    listed = {recipe["name"]: recipe["scores"] for recipe in json.loads(capsys.readouterr().out)}
    for name, path in recipe_paths().items():
        assert listed[name] == (load_config(path).measured.summary() or None)
    assert any(listed.values())
    assert run(["recipes"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert all(f"Scores: {scores}" in text for scores in listed.values() if scores)


@pytest.mark.parametrize("same", [True, False])
def test_init_tells_the_scores_of_the_settings_that_it_copies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], same: bool
) -> None:
    recipe = tmp_path / "measured.toml"
    recipe.write_text('[data]\nsource = "de"\ntarget = "en"\n', encoding="utf-8")
    settings = load_config(recipe).fingerprint if same else "0" * 12
    with recipe.open("a", encoding="utf-8") as file:
        file.write(MEASURED.format(settings=settings))
    assert run(["init", str(tmp_path / "mine"), "--from", str(recipe)]) == 0
    assert (SCORES in capsys.readouterr().out) == same
    assert load_config(tmp_path / "mine" / "mine.toml").expected(1) == (
        load_config(recipe).measured if same else None
    )


def test_init_copies_a_file_with_mistakes_to_mend_them(tmp_path: Path) -> None:
    recipe = tmp_path / "broken.toml"
    recipe.write_text("[data]\nsorce = 1\n", encoding="utf-8")
    assert run(["init", str(tmp_path / "mine"), "--from", str(recipe)]) == 0
    assert (tmp_path / "mine" / "mine.toml").read_bytes() == recipe.read_bytes()


def test_init_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine" / "mine.toml"
    path.parent.mkdir()
    path.write_text("# mine\n", encoding="utf-8")
    assert run(["init", str(path.parent), "--from", RECIPE]) == 2
    assert capsys.readouterr().err.startswith(f"error: {path} is there already")
    assert path.read_text(encoding="utf-8") == "# mine\n"


def test_init_where_a_file_stands_is_an_error_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert run(["init", str(tmp_path / "file" / "deep"), "--from", RECIPE]) == 2
    assert "cannot be written: Not a directory." in capsys.readouterr().err


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["show-config", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(recipe_paths()))
def test_what_is_shown_is_the_same_configuration(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shown.toml").write_text(shown(capsys, name, "--set", "training.clip_norm=none"), encoding="utf-8")
    expected = load_config(resolve_recipe(name), ["training.clip_norm=none"])
    assert load_config(tmp_path / "shown.toml") == expected


def test_each_setting_is_shown_with_its_meaning_and_whether_it_is_the_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (name, *_) = [name for name in recipe_paths() if load_config(resolve_recipe(name)).model.norm == "pre"]
    lines = shown(capsys, name, "--set", "training.steps=777", "--set", "training.ema=0.0").split("\n")
    place = lines.index("steps = 777  # default: 8000")
    assert lines[place - 1] == "# number of optimiser updates"
    assert "ema = 0.0  # same as the default" in lines
    assert "#min_count = 1" in lines
    sections = [Config.model_fields[field].annotation for field in Config.model_fields if field != "task"]
    settings = 1 + sum(len(section.model_fields) for section in sections)  # type: ignore[union-attr]
    assert sum(bool(re.match(r"#?[a-z_0-9]+ = ", line)) for line in lines) == settings


@pytest.mark.parametrize("name", sorted(recipe_paths()))
def test_a_setting_is_active_exactly_if_the_configuration_sets_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tomllib.loads(recipe_paths()[name].read_text(encoding="utf-8"))
    active = tomllib.loads(shown(capsys, name))
    if written["task"] == "language-modeling":
        active["tokenizer"].pop("keep_space")  # follows from the task
    assert {section: settings for section, settings in active.items() if settings} == written


def test_a_default_is_changed_by_deleting_its_comment_sign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = re.sub(r"^#(?=\S)", "", shown(capsys), flags=re.MULTILINE)
    (tmp_path / "all.toml").write_text(text, encoding="utf-8")
    assert sum(len(settings) for settings in tomllib.loads(text).values() if isinstance(settings, dict)) > 90
    assert load_config(tmp_path / "all.toml") == parse_config(
        {"data": {"source": "de", "target": "en"}}, origin="x"
    )


def test_the_defaults_are_shown_without_a_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys)
    assert "# default:" not in text
    assert "\n#steps = 8000\n" in text
    assert {"data": {"source": "de", "target": "en"}}.items() <= tomllib.loads(text).items()


def test_json_holds_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    values = json.loads(shown(capsys, RECIPE, "--json"))
    assert values == load_config(resolve_recipe(RECIPE)).model_dump(mode="json")


def test_the_schema_for_editors_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(shown(capsys, "--schema")) == json_schema()


def write_text(folder: Path, pairs: int, words: int = 6) -> Path:
    """train and val in two languages."""
    folder.mkdir()
    for split, count in (("train", pairs), ("val", 5)):
        for language in ("aa", "bb"):
            lines = [f"{language} {split} {n} {'x ' * (words - 3)}" for n in range(count)]
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_init_looks_at_the_text_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "text", 200)
    assert run(["init", "mine", "--data", "text", "--source", "aa", "--target", "bb"]) == 0
    text = Path("mine/mine.toml").read_text(encoding="utf-8")
    assert text.startswith("# aa-bb, chosen for 200 pairs of 6.0 and 6.0 words on average.")
    assert "vocab_size = 3000  # each piece must be seen often enough in 200 pairs" in text
    config = load_config(Path("mine/mine.toml"))
    assert (config.data.root, config.data.valid, config.data.test) == ("text", "val", None)
    assert "manyheads train mine/mine.toml" in capsys.readouterr().out


def test_the_more_text_the_larger_the_model_and_the_less_dropout(tmp_path: Path) -> None:
    configs = [suggest(write_text(tmp_path / str(n), n), "aa", "bb").config for n in (500, 16_000)]
    small, large = configs
    assert small.model.d_model < large.model.d_model
    assert small.tokenizer.vocab_size < large.tokenizer.vocab_size
    assert small.tokenizer.sampling > large.tokenizer.sampling == 0
    assert [size.dropout for size in SIZES] == sorted((size.dropout for size in SIZES), reverse=True)


def test_long_texts_get_room(tmp_path: Path) -> None:
    assert suggest(write_text(tmp_path / "long", 50, words=150), "aa", "bb").config.data.max_length == 256


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either --from RECIPE, or --data ROOT"),
        (["--from", RECIPE, "--data", "text"], "give either --from RECIPE, or --data ROOT"),
        (["--data", "text"], "--data needs the languages"),
        (["--data", "nowhere", "--source", "aa", "--target", "bb"], "nowhere is no folder"),
        (["--data", "text", "--source", "aa", "--target", "cc"], "in both languages there is: nothing"),
    ],
)
def test_init_says_what_it_needs(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "text", 5)
    assert run(["init", "mine", *arguments]) in (2, 3)
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("mine").exists()
