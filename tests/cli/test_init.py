"""`init`: a copy of a recipe, or settings chosen for a text."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Call

from faults import full_disk
from manyheads.cli.main import run
from manyheads.config.load import load_config, recipe_paths
from manyheads.runs import suggest as suggesting
from manyheads.runs.estimate import MachineSpeed

RECIPE = next(iter(recipe_paths()))
SPEED = MachineSpeed(pass_seconds=0.001, update_seconds=0.1, parameters=1_234_567, free=1.0)


@pytest.fixture(autouse=True)
def known_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the measurement of speed by a constant, and change to an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(suggesting, "measure_speed", lambda config, lengths: SPEED)


def test_init_copies_a_recipe_word_for_word_under_the_name_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    assert "manyheads train new/swahili/swahili.toml" in call("init", "new/swahili", "--from", RECIPE).out
    assert Path("new/swahili/swahili.toml").read_bytes() == recipe_paths()[RECIPE].read_bytes()
    Path("here").mkdir()
    monkeypatch.chdir("here")
    assert run(["init", ".", "--from", "../new/swahili/swahili.toml"]) == 0
    assert Path("here.toml").is_file()


def test_init_copies_a_file_with_mistakes_to_mend_them(tmp_path: Path) -> None:
    recipe = tmp_path / "broken.toml"
    recipe.write_text("[data]\nsorce = 1\n", encoding="utf-8")
    assert run(["init", str(tmp_path / "mine"), "--from", str(recipe)]) == 0
    assert (tmp_path / "mine" / "mine.toml").read_bytes() == recipe.read_bytes()


def test_init_never_overwrites(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "mine" / "mine.toml"
    path.parent.mkdir()
    path.write_text("# mine\n", encoding="utf-8")
    assert call("init", path.parent, "--from", RECIPE, code=2).err.startswith(f"error: {path} is there already")
    assert path.read_text(encoding="utf-8") == "# mine\n"


def test_a_full_disk_leaves_no_configuration_that_is_in_the_way(call: Call) -> None:
    with full_disk():
        assert "File too large" in call("init", "mine", "--from", RECIPE, code=2).err
    assert list(Path("mine").iterdir()) == []
    call("init", "mine", "--from", RECIPE)


def test_init_in_a_path_below_a_file_is_an_error_line(tmp_path: Path, call: Call) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    err = call("init", tmp_path / "file" / "deep", "--from", RECIPE, code=2).err
    assert "cannot be written: Not a directory." in err


def write_text(folder: Path, pairs: int, words: int = 6) -> Path:
    """Write the splits train and val in two languages."""
    folder.mkdir()
    for split, count in (("train", pairs), ("val", 5)):
        for language in ("aa", "bb"):
            lines = [f"{language} {split} {n} {'x ' * (words - 3)}" for n in range(count)]
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_init_chooses_settings_for_the_text_and_gives_reasons(tmp_path: Path, call: Call) -> None:
    write_text(tmp_path / "text", 200)
    printed = call("init", "mine", "--data", "text", "--source", "aa", "--target", "bb").out
    text = Path("mine/mine.toml").read_text(encoding="utf-8")
    assert text.startswith("# aa-bb, chosen for 200 pairs of 6.0 and 6.0 words on average.")
    assert re.search(
        r"^vocab_size = \d{3}  # each piece must be seen often enough in 200 pairs$", text, re.MULTILINE
    )
    config = load_config(Path("mine/mine.toml"))
    assert (config.data.root, config.data.valid, config.data.test) == (str(tmp_path / "text"), "val", None)
    assert "mine/mine.toml: settings for 200 pairs of aa and bb in text" in printed
    assert "manyheads doctor mine/mine.toml" in printed
    assert "manyheads train mine/mine.toml     writes the run runs/mine" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give either --from RECIPE to copy, or --data PATH"),
        (["--from", RECIPE, "--data", "text"], 2, "give either --from RECIPE to copy, or --data PATH"),
        (["--from", RECIPE, "--minutes", "5"], 2, "are for your own text (--data)"),
        (["--data", "text", "--source", "aa", "--minutes", "0"], 2, "above 0"),
        (["--data", "text", "--source", "aa", "--target", "cc"], 3, "in both languages there is: nothing"),
    ],
)
def test_init_names_missing_and_conflicting_options(
    arguments: list[str], code: int, message: str, tmp_path: Path, call: Call
) -> None:
    write_text(tmp_path / "text", 5)
    err = call("init", "mine", *arguments, code=code).err
    assert message in " ".join(err.replace("x>0", "above 0").split())
    assert not Path("mine").exists()


def write_undivided(folder: Path, pairs: int = 60, stem: str = "corpus") -> Path:
    """Write one text in two languages without splits; no two sentences share a word."""
    folder.mkdir(parents=True)
    for language in ("aa", "bb"):
        lines = [
            " ".join(f"{language}{chr(97 + n // 26)}{chr(97 + n % 26)}{word}" for word in "stuvwx")
            for n in range(pairs)
        ]
        (folder / f"{stem}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_text_that_is_not_divided_is_named_with_the_command_that_divides_it(tmp_path: Path, call: Call) -> None:
    """Run the two printed commands, which split the text and write the configuration."""
    write_undivided(tmp_path / "my text")
    printed = call("init", "mine", "--data", "my text", "--source", "aa", code=3).err
    assert "my text holds corpus.aa and corpus.bb, but no train and valid." in printed
    assert not Path("mine").exists()
    commands = [shlex.split(line) for line in printed.splitlines() if line.startswith("  manyheads")]
    assert [run(command[1:]) for command in commands] == [0, 0]
    assert load_config(Path("mine/mine.toml")).data.root == str(tmp_path / "mine" / "data")


def test_init_asks_on_a_terminal_before_it_divides_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    write_undivided(tmp_path / "aa-bb")
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    answers = iter([False, True])
    monkeypatch.setattr(click, "confirm", lambda *_, **__: next(answers))
    assert run(["init", "mine", "--data", "aa-bb"]) == 3
    assert not Path("mine").exists()
    printed = call("init", "mine", "--data", "aa-bb").out
    assert "manyheads data split aa-bb/corpus.aa aa-bb/corpus.bb" in printed
    assert "mine/data: train 54, valid 3, test 3 pairs" in printed
    assert 'root = "./data"' in Path("mine/mine.toml").read_text(encoding="utf-8")


def test_divide_asks_no_question_and_keeps_the_test_set(tmp_path: Path) -> None:
    root = write_undivided(tmp_path / "aa-bb", stem="train")
    for language in ("aa", "bb"):
        (root / f"test.{language}").write_text("my own\n", encoding="utf-8")
    assert run(["init", "mine", "--data", "aa-bb", "--yes"]) == 0
    config = load_config(Path("mine/mine.toml"))
    assert (config.data.train, config.data.valid, config.data.test) == ("train", "valid", "test")
    assert Path("mine/data/test.aa").read_text(encoding="utf-8") == "my own\n"


def test_after_a_division_without_a_configuration_the_command_that_uses_it_is_named(
    monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    write_undivided(Path("aa-bb"))
    command = "init", "mine", "--data", "aa-bb", "--yes"

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(suggesting, "measure_speed", interrupt)
        call(*command, code=130)
    error = call(*command, code=3).err
    assert error.startswith(
        "error: mine/data holds a text already. Remove the folder, or use the text:\n  manyheads"
    )
    call(*shlex.split(error.partition("manyheads ")[2]))


def test_the_configuration_works_from_every_folder_and_after_a_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    write_undivided(project / "aa-bb")
    write_text(project / "text", 20)
    monkeypatch.chdir(project)
    assert run(["init", "inside", "--data", "aa-bb", "--yes"]) == 0
    assert run(["init", "deep/beside", "--data", "text", "--source", "aa"]) == 0
    monkeypatch.chdir(tmp_path)
    for name in ("inside/inside.toml", "deep/beside/beside.toml"):
        assert run(["data", "report", f"project/{name}"]) == 0
    project.rename(tmp_path / "moved")
    monkeypatch.chdir("/")
    for name in ("inside/inside.toml", "deep/beside/beside.toml"):
        assert run(["data", "report", str(tmp_path / "moved" / name)]) == 0


def test_text_of_another_project_is_written_as_an_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path / "text", 20)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run(["init", "mine", "--data", "../text", "--source", "aa"]) == 0
    assert f'root = "{tmp_path / "text"}"' in Path("mine/mine.toml").read_text(encoding="utf-8")


def test_init_prints_the_measured_speed_and_the_time_limit(tmp_path: Path, call: Call) -> None:
    write_text(tmp_path / "text", 200)
    out = call("init", "mine", "--data", "text", "--source", "aa").out
    assert "target tokens/s, measured on random tokens with 1,234,567 parameters" in out
    assert "0.5 minutes on" in call("init", "short", "--data", "text", "--source", "aa", "--minutes", "0.5").out
    assert load_config(Path("short/short.toml")).training.max_minutes == 0.5
    assert run(["init", "there", "--data", "text", "--source", "aa", "--device", "cpu"]) == 0
    assert load_config(Path("there/there.toml")).training.device == "cpu"
    assert load_config(Path("short/short.toml")).training.device == "auto"
