"""The program: help, mistakes, exit codes, and imports."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Call

from manyheads import __version__
from manyheads.cli import signals
from manyheads.cli.main import _Program, program, run
from manyheads.cli.signals import Terminated
from manyheads.cli.verbs import SECTIONS, TEXTS, VerbWithSubverbs, program_name
from manyheads.config.load import recipe_paths
from manyheads.errors import ConfigError, DataError, ManyheadsError, MissingExtraError, TrainingError, UsageError

SOURCE = Path(__file__).parent.parent.parent / "src"
HEAVY = ("torch", "numpy", "rich", "sacrebleu", "sentencepiece", "safetensors")
VERBS = [
    *_Program.verbs, "data fetch", "data split", "data report", "train average", "doctor museum", "serve keys",
    "serve keys add",
]  # fmt: skip


def run_python(code: str, *, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def make_recipes_fail(monkeypatch: pytest.MonkeyPatch, failure: BaseException) -> None:
    """Make the verb `recipes` raise an exception."""

    def fail() -> None:
        raise failure

    monkeypatch.setattr("manyheads.config.load.recipe_paths", fail)


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_every_verb_has_help_with_examples_that_can_be_typed(verb: str, call: Call) -> None:
    output = call(*verb.split(), "--help").out
    assert f"Usage: manyheads {verb}" in output
    examples = output.partition("Example")[2].split("\n", 1)[1]
    assert f"manyheads {verb}" in examples
    lines = re.findall(r"manyheads ([^|<>\n]*)", examples)
    assert lines
    for line in lines:
        words = shlex.split(line)
        command: click.Command | None = program
        while (
            isinstance(command, click.Group) and words and words[0] in command.list_commands(click.Context(command))
        ):
            command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None
        assert isinstance(command, VerbWithSubverbs) or not isinstance(command, click.Group), line
        given = command.make_context("manyheads", words).params
        recipe = given.get("recipe") or given.get("config")
        assert recipe is None or recipe.endswith(".toml") or recipe in recipe_paths(), line


def test_the_help_of_the_program_names_every_verb_with_its_own_first_line(call: Call) -> None:
    output = call().out
    assert call("--help").out == output
    for name, (_, line) in _Program.verbs.items():
        assert re.search(rf"^  {name} +{re.escape(line)}$", output, re.MULTILINE)


def test_the_help_lists_every_verb_in_a_section() -> None:
    assert [name for names in SECTIONS.values() for name in names] == list(_Program.verbs)
    assert set(_Program.verbs) == {name for name, texts in TEXTS.items() if "module" in texts}


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_that_of_the_package(option: str, call: Call) -> None:
    assert call(option).out == f"manyheads {__version__}\n"


def test_the_version_is_the_same_everywhere() -> None:
    root = SOURCE.parent
    assert tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"] == __version__
    assert f"\nversion: {__version__}\n" in (root / "CITATION.cff").read_text("utf-8")


def test_help_and_usage_errors_import_no_heavy_package() -> None:
    """Run all lines in one process, where a module that one line imports stays loaded."""
    lines = [
        [],
        ["--version"],
        ["trian"],
        *([*verb.split(), "--help"] for verb in ["", *VERBS]),
        ["train", "--wrong"],
    ]
    lines += [["translate", "x", "--beam", "1", "--n-best", "2"]]
    result = run_python(
        f"import sys\nfrom manyheads.cli.main import run\nfor line in {lines}:\n"
        f"    code = run(line)\n    print('loaded:', line, code, sorted(set(sys.modules) & set({HEAVY})))"
    )
    loaded = re.findall(r"^loaded: .*", result.stdout, re.MULTILINE)
    assert len(loaded) == len(lines), result.stderr
    assert [line for line in loaded if not line.endswith((" 0 []", " 2 []"))] == []


def test_a_mistake_in_the_configuration_needs_no_torch(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[model]\nd_modl = 3\n", encoding="utf-8")
    result = run_python(
        "import sys\nfrom manyheads.cli.main import run\nfor verb in ('train', 'data report', 'show-config'):\n"
        "    print(run([*verb.split(), 'bad.toml']), 'torch' in sys.modules)",
        cwd=tmp_path,
    )
    assert result.stdout == "2 False\n" * 3, result.stderr
    assert result.stderr.count("error: bad.toml: 2 mistakes\n") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qqq"], "no command qqq. See: manyheads --help"),
        (["train"], "Missing argument 'CONFIG'. See: manyheads train --help"),
        (["train", "nothing.toml"], "no configuration file or recipe nothing.toml; `manyheads recipes` lists"),
        (["train", "average", "x", "--last", "0"], "Invalid value for '--last': 0 is not in the range 1<=x<="),
        (["evaluate", "x", "--against", "y", "--output", "z"], "--output does not go with --against."),
        (["evaluate", "x", "--split", "dev"], "Invalid value for '--split': 'dev' is not one of"),
        (["show-config", "--set", "a.b=1"], "--set needs a CONFIG to change."),
        (["show-config", "--schema", "demo-de-en"], "--schema is the same for every configuration; give it alone."),
        (["--wrong"], "No such option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_usage_error_is_one_line_and_exits_2(arguments: list[str], message: str, call: Call) -> None:
    output = call(*arguments, code=2)
    assert output.out == ""
    assert output.err.startswith(f"error: {message}")
    assert output.err.count("\n") == 1


@pytest.mark.parametrize(
    ("failure", "code", "printed"),
    [
        (ConfigError(["training.steps = 0 is wrong"], origin="x"), 2, "error: x: training.steps = 0 is wrong"),
        (DataError("a.de, line 3: no UTF-8"), 3, "error: a.de, line 3: no UTF-8"),
        (MissingExtraError("spaCy is missing"), 4, "error: spaCy is missing"),
        (TrainingError("the loss is not finite"), 1, "error: the loss is not finite"),
        (ManyheadsError("anything"), 1, "error: anything"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (
            OSError(28, "No space left on device", "runs/x"), 3,
            "error: runs/x: No space left on device. Free some space, and give the same command again.",
        ),
        (
            PermissionError(13, "Permission denied", "runs/x"), 3,
            "error: runs/x: Permission denied. Check who may read and write there (ls -ld), or name another place.",
        ),
    ],
)  # fmt: skip
def test_a_mistake_of_the_user_or_the_system_is_one_line_and_its_exit_code(
    failure: BaseException, code: int, printed: str, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    make_recipes_fail(monkeypatch, failure)
    assert call("recipes", code=code).err == f"{printed}\n"


@pytest.mark.parametrize("failure", [UsageError, ZeroDivisionError])
def test_no_error_writes_controls_or_very_long_lines(failure, monkeypatch, capsys) -> None:
    make_recipes_fail(monkeypatch, failure("a\x1b[2J\u202eb\nerror: c\x00" + "x" * 100_000 + " is unknown."))
    run(["recipes"])
    error = capsys.readouterr().err
    assert all(character.isprintable() or character == "\n" for character in error)
    assert "a\\x1b[2J\\u202eb" in error
    assert error.rstrip().splitlines()[0 if failure is UsageError else -2].endswith("xxx is unknown.")
    assert max(map(len, error.splitlines())) < 1_100
    assert failure is not UsageError or error.count("\n") == 1


def ended_by_the_launcher(seconds: float) -> None:
    raise Terminated(signal.SIGTERM)


@pytest.mark.parametrize(
    ("rank", "failure", "code", "waits"),
    [
        ("0", DataError("cause"), 3, False),
        ("1", DataError("cause"), 3, True),
        ("1", RuntimeError("Connection closed by peer"), 1, True),
        ("0", RuntimeError("Connection closed by peer"), 1, True),
    ],
)
def test_of_several_processes_the_first_reports_and_others_only_what_no_other_has(
    rank, failure, code, waits, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", rank)
    make_recipes_fail(monkeypatch, failure)
    monkeypatch.setattr(signals.time, "sleep", lambda seconds: ended_by_the_launcher(seconds) if seconds else None)
    assert run(["recipes"]) == code
    assert bool(capsys.readouterr().err) is not waits
    monkeypatch.setattr(signals.time, "sleep", lambda seconds: None)  # no other process has failed
    assert run(["recipes"]) == code
    assert str(failure) in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--debug", "recipes"], ["recipes", "--debug"]])
def test_debug_shows_the_traceback_before_the_error_line(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    make_recipes_fail(monkeypatch, DataError("a.de is empty"))
    error = call(*arguments, code=3).err
    assert error.startswith("Traceback")
    assert error.endswith("\nerror: a.de is empty\n")


def test_an_internal_error_shows_its_traceback_and_exits_1(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    make_recipes_fail(monkeypatch, ZeroDivisionError("ours"))
    error = call("recipes", code=1).err
    assert error.startswith("Traceback")
    assert "ZeroDivisionError: ours\nThis is a fault of manyheads" in error


@pytest.mark.parametrize(
    "prepared",
    ["", "main.run = lambda arguments, signals: sys.stdout.write('not flushed') - 11"],
    ids=["flushed", "at the end"],
)
def test_a_closed_pipe_ends_the_program_without_a_message(prepared: str) -> None:
    code = f"import sys\nfrom manyheads.cli import main\nsys.argv[1:] = ['show-config']\n{prepared}\nmain.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), error) == (141, b"")


@pytest.mark.parametrize(
    ("environment", "colour"), [({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)]
)
def test_colour_follows_the_environment(environment: dict[str, str], colour: bool) -> None:
    clean = {"NO_COLOR": "", "FORCE_COLOR": "", **environment}
    result = run_python("from manyheads.cli.main import run\nrun(['qqq'])", **clean)
    assert ("\x1b[" in result.stderr) == colour
    assert "no command qqq" in result.stderr


def test_output_is_utf8_whatever_the_locale() -> None:
    code = "import sys, manyheads.cli.main as main, click\nsys.argv = ['manyheads', '가나']\nmain.main()"
    result = run_python(code, PYTHONIOENCODING="latin-1")
    assert result.stderr == "error: no command 가나. See: manyheads --help\n"


def test_the_program_name_is_a_command_that_works_in_the_current_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Include an environment that is not active (after `make demo`), whose commands need their path."""
    script = tmp_path / ".venv" / "bin" / "manyheads"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.setenv("PATH", str(script.parent))
    assert program_name() == "manyheads"
    monkeypatch.setenv("PATH", "")
    assert program_name() == ".venv/bin/manyheads"
    script.unlink()
    assert program_name() == f"{sys.executable} -m manyheads"


# --- completion by the shell: click's own, and our recipes ---


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("manyheads show-c", ["plain,show-config"]),
        ("manyheads data fe", ["plain,fetch"]),
        ("manyheads train --fo", ["plain,--force"]),
        ("manyheads train average --las", ["plain,--last"]),
        ("manyheads export runs/one --to a", ["plain,argos"]),
        ("manyheads init x --from demo-k", ["plain,demo-ko-en"]),
        ("manyheads train demo-k", ["plain,demo-ko-en"]),
        ("manyheads train my.to", ["file,my.to"]),
        ("manyheads translate runs/t", ["file,runs/t"]),
    ],
)
def test_a_line_is_completed(line: str, completed: list[str], monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setenv("_MANYHEADS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    assert call().out.splitlines() == completed


def test_a_completion_imports_neither_torch_nor_numpy() -> None:
    code = "import sys\nfrom manyheads.cli.main import run\nrun([])\nprint({'torch', 'numpy'} & {*sys.modules})"
    words = {"_MANYHEADS_COMPLETE": "bash_complete", "COMP_WORDS": "manyheads train demo-k", "COMP_CWORD": "2"}
    assert run_python(code, **words).stdout == "plain,demo-ko-en\nset()\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("bench decode runs/mine", "the command bench is gone. Measure with benchmarks/training_speed.py CONFIG"),
        ("export runs/mine out --force", "the option export --force is gone. Leave it out: manyheads evaluate RUN"),
        ("export runs/mine --device=cpu", "the option export --device is gone. Give it to the command that scores"),
        ("translate runs/mine --geometric", "the option translate --geometric is gone. Leave it out: --ensemble"),
    ],
)
def test_a_verb_or_option_of_an_earlier_version_says_what_to_use_in_its_place(
    command: str, message: str, call: Call
) -> None:
    assert message in call(*command.split(), code=2).err
