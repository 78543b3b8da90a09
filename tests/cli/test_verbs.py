"""Verbs, groups of verbs, and verbs whose first argument may name a subverb."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Call

from manyheads.cli.verbs import (
    TEXTS,
    Settings,
    Verb,
    VerbWithSubverbs,
    _nearest_verb,
    announce_loading,
    echo,
    verb,
    verb_with_subverbs,
)
from manyheads.config.load import recipe_paths
from manyheads.results import Note


@pytest.fixture
def bake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> VerbWithSubverbs:
    """Return the verb `bake FILE`, which has the subverb `bake bread`."""
    for path in ("bake", "bake bread"):
        options = {"hot": "Serve it hot."}
        monkeypatch.setitem(TEXTS, path, {"help": f"The line of {path}.", "epilog": "", "options": options})
    monkeypatch.chdir(tmp_path)

    @verb_with_subverbs("bake")
    @click.argument("file")
    @click.option("--hot", is_flag=True)
    def bake(file: str, hot: bool) -> None:
        """Bake FILE."""
        click.echo(f"bake {file} {hot}")

    @verb("bake bread", bake)
    @click.argument("flour", required=False)
    def bread(flour: str | None) -> None:
        """Bake bread of FLOUR."""
        click.echo(f"bread {flour}")

    return bake


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("cake.toml", "bake cake.toml False"),
        ("cake.toml --hot", "bake cake.toml True"),
        ("--hot cake.toml", "bake cake.toml True"),
        ("./bread", "bake ./bread False"),
        ("bread", "bread None"),
        ("-q bread rye", "bread rye"),
        ("bread -q bread", "bread bread"),
        ("--hot bread", "bake bread True"),
    ],
)
def test_the_first_argument_is_a_subverb_or_the_argument_of_the_verb(
    line: str, printed: str, bake: VerbWithSubverbs, capsys: pytest.CaptureFixture[str]
) -> None:
    bake.main(line.split(), standalone_mode=False)
    assert capsys.readouterr().out == f"{printed}\n"


def test_a_misspelt_subverb_is_reported_unless_a_file_has_that_name(
    bake: VerbWithSubverbs, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(click.UsageError, match=r"^no file or command braed; did you mean bake bread\?$"):
        bake.main(["braed", "rye"], "bake", standalone_mode=False)
    Path("braed").touch()
    bake.main(["braed"], standalone_mode=False)
    assert capsys.readouterr().out == "bake braed False\n"


def test_the_help_shows_both_usages_the_options_and_the_subverbs(
    bake: VerbWithSubverbs, capsys: pytest.CaptureFixture[str]
) -> None:
    bake.main(["-h"], "bake", standalone_mode=False)
    output = capsys.readouterr().out
    assert output.startswith("Usage: bake [OPTIONS] FILE\n       bake bread [OPTIONS] [FLOUR]\n\n  Bake FILE.\n")
    assert re.search(r"\n  --hot +Serve it hot\.\n", output)
    assert "\nCommands:\n  bread  The line of bake bread.\n" in output


@pytest.mark.parametrize("path", ["train average", "doctor museum", "serve keys"])
def test_no_recipe_is_taken_for_a_misspelt_verb(path: str) -> None:
    group, name = path.split()
    for recipe in recipe_paths():
        assert _nearest_verb(click.Context(click.Command(group), info_name=f"manyheads {group}"), recipe) != name


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("museum", "no command museum; did you mean doctor museum? See: manyheads --help"),
        ("average runs/x", "no command average; did you mean train average? See: manyheads --help"),
        ("keys add keys.json x", "no command keys; did you mean serve keys? See: manyheads --help"),
        ("data fetsh", "no command fetsh; did you mean fetch? See: manyheads data --help"),
        ("serve keys ad", "no command ad; did you mean add? See: manyheads serve keys --help"),
        ("train averge x", "no file or command averge; did you mean train average? See: manyheads train --help"),
        ("doctor musem", "no file or command musem; did you mean doctor museum? See: manyheads doctor --help"),
        ("serve key add", "no file or command key; did you mean serve keys? See: manyheads serve --help"),
    ],
)
def test_an_unknown_verb_is_reported_with_the_path_of_the_nearest_verb(line: str, message: str, call: Call) -> None:
    assert call(*line.split(), code=2).err == f"error: {message}\n"


@pytest.mark.parametrize(
    ("line", "suggested"),
    [("train x --outptu y", "--output"), ("inspect x --veiw y", "--view"), ("translate x --baem 2", "--beam")],
)
def test_an_unknown_option_is_reported_with_the_nearest_option(line: str, suggested: str, call: Call) -> None:
    assert suggested in call(*line.split(), code=2).err


@pytest.mark.parametrize("quiet", [False, True])
def test_libraries_that_load_slowly_are_announced_unless_quiet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quiet: bool
) -> None:
    announced = threading.Event()
    monkeypatch.setattr(click, "echo", lambda text, err: announced.set())
    monkeypatch.setattr(sys, "announced", announced, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    name = f"slow_library_{quiet}".lower()
    tmp_path.joinpath(f"{name}.py").write_text(f"import sys\nsys.announced.wait({0 if quiet else 60})\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = threading.active_count()
    with click.Context(click.Command("train"), obj=Settings(quiet=quiet)):
        announce_loading(after=0.1)
        assert (threading.active_count() > before) != quiet
        __import__(name)
    assert announced.is_set() != quiet


@pytest.mark.parametrize(("options", "shown"), [([], "a\n"), (["-v"], "a\nb\n")])
def test_what_asks_for_no_action_is_printed_when_verbose(
    options: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command(cls=Verb)
    def judge() -> None:
        echo({}, ["a", Note("b")], as_json=False)

    judge.main(options, standalone_mode=False)
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(("language", "label"), [("en", "verdict"), ("ko", "판정")])
def test_verdicts_are_in_the_chosen_language_and_other_lines_and_json_as_they_are(
    language: str, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command(cls=Verb)
    @click.option("--json", "as_json", is_flag=True)
    def judge(as_json: bool) -> None:
        echo({"verdict": "Train longer"}, ["BLEU 3; a verdict: x", "  verdict: Train longer"], as_json=as_json)

    judge.main(["--lang", language], standalone_mode=False)
    said = {"en": "Train longer", "ko": "더 오래 학습하세요"}[language]
    assert capsys.readouterr().out == f"BLEU 3; a verdict: x\n  {label}: {said}\n"
    judge.main(["--lang", language, "--json"], standalone_mode=False)
    assert '"verdict": "Train longer"' in capsys.readouterr().out
