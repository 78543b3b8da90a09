"""`completion`: completions in a real bash, zsh and fish, and by the functions that all shells call."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.cli.main import run
from manyheads.config.load import recipe_paths
from manyheads.data.catalogue import CORPORA
from manyheads.doctor.museum import exhibits

SOURCE = Path(__file__).parent.parent.parent / "src"
Completed = Callable[..., list[str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with two runs, a configuration and other files."""
    for name, task in (("runs/one", "translation"), ("runs/two", "classification"), ("deep/er/run", "translation")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text(json.dumps({"format": 1, "task": task}), encoding="utf-8")
    (tmp_path / "runs" / "notes").mkdir()
    (tmp_path / "my.toml").touch()
    (tmp_path / "text.de").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def completed(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Completed:
    """Return the values that complete the last word of a line, as fish gets them."""

    def complete(line: str) -> list[str]:
        *_, word = line.split(" ")
        monkeypatch.setenv("_MANYHEADS_COMPLETE", "fish_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", word)
        assert run([]) == 0
        lines = capsys.readouterr().out.split("\n")
        return [line.partition(",")[2].partition("\t")[0] for line in lines if line]

    return complete


RECIPES = list(recipe_paths())
CHOICES = {
    "manyheads show-c": ["show-config"],
    "manyheads train --fo": ["--force"],
    "manyheads train aver": ["average"],
    "manyheads train average --la": ["--last"],
    "manyheads serve ke": ["keys"],
    "manyheads serve keys re": ["remove"],
    "manyheads serve runs/one ke": ["ke"],  # a directory, which the shell completes itself
    "manyheads doctor muse": ["museum"],
    "manyheads doctor museum target": [one.name for one in exhibits() if one.name.startswith("target")],
    "manyheads data fetch ": list(CORPORA),
    "manyheads completion ": ["bash", "zsh", "fish"],
    "manyheads train ": ["average", *RECIPES, "deep/", "my.toml", "runs/"],
    "manyheads train m": [name for name in RECIPES if name.startswith("m")] + ["my.toml"],
    "manyheads show-config demo-k": ["demo-ko-en"],
    "manyheads init x --from demo-k": ["demo-ko-en"],
    "manyheads translate ": ["runs/one", "runs/two"],
    "manyheads translate runs/t": ["runs/two"],
    "manyheads translate deep/": ["deep/er/run"],
    "manyheads evaluate runs/one --against runs/": ["runs/one", "runs/two"],
    "manyheads serve runs/one runs/t": ["runs/two"],
    "manyheads doctor run": ["runs/one", "runs/two", "runs/"],
    "manyheads export runs/one --to a": ["argos"],
    "manyheads train x --device c": ["cpu", "cuda"],
    "manyheads train x --set tr": ["training."],
    "manyheads train x --set ta": ["task="],
    "manyheads train x --set training.prec": ["training.precision="],
    "manyheads train x --set model.norm=": ["model.norm=pre", "model.norm=post"],
    "manyheads train x --set training.compile=t": ["training.compile=true"],
    "manyheads train x --set training.epochs=": ["training.epochs=none"],
    "manyheads train x --set no.such=": [],
    "manyheads inspect runs/two TEXT --view o": ["occlusion"],
    "manyheads inspect runs/one --view p": ["probabilities", "positions"],
    "manyheads inspect runs/none --view c": ["classes"],
    "manyheads curves runs/one --view s": ["scores", "speed", "samples"],
}  # fmt: skip


@pytest.mark.parametrize("line", CHOICES)
def test_a_line_is_completed(line: str, completed: Completed) -> None:
    assert completed(line) == CHOICES[line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_that_of_click_with_our_additions(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_MANYHEADS_COMPLETE={shell}_complete" in script
    additions = {"bash": "compopt -o nospace", "zsh": '-S "${${completions[1]##*[=./]}:+ }" -a'}
    assert additions.get(shell, "complete ") in script


def test_completion_imports_neither_torch_nor_numpy(folder: Path) -> None:
    lines = ["manyheads train --set model.", "manyheads inspect runs/one --view ", "manyheads doctor museum "]
    code = "import sys\nfrom manyheads.cli.main import run\nrun([])\nprint(sorted(sys.modules))"
    for line in [*lines, "manyheads train ", "manyheads translate ", "manyheads data fetch "]:
        environment = {
            "_MANYHEADS_COMPLETE": "fish_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": line.split(" ")[-1],
        }
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        *values, modules = done.stdout.strip().split("\n")
        assert values, done.stderr
        assert not {"'torch'", "'numpy'", "'rich'"} & set(modules.strip("[]").split(", ")), line


LINES = {
    "manyheads show-c": "manyheads show-config ",
    "manyheads train --fo": "manyheads train --force ",
    "manyheads train my": "manyheads train my.toml ",
    "manyheads init x --from demo-k": "manyheads init x --from demo-ko-en ",
    "manyheads translate runs/t": "manyheads translate runs/two ",
    "manyheads translate runs/": "manyheads translate runs/",
    "manyheads translate runs/a": "manyheads translate runs/a,b ",
    "manyheads doctor runs/o": "manyheads doctor runs/one ",
    "manyheads train --set tr": "manyheads train --set training.",
    "manyheads train --set training.prec": "manyheads train --set training.precision=",
    "manyheads train --set model.norm=po": "manyheads train --set model.norm=post ",
    "manyheads train --set=model.norm=po": "manyheads train --set=model.norm=post ",
    "manyheads train x --set model.norm=pre --set ta": "manyheads train x --set model.norm=pre --set task=",
    "manyheads bench decode runs/one --device=cp": "manyheads bench decode runs/one --device=cpu ",
    "manyheads inspect runs/one TEXT --view pr": "manyheads inspect runs/one TEXT --view probabilities ",
    "manyheads export runs/one --to a": "manyheads export runs/one --to argos ",
    "manyheads data split te": "manyheads data split text.de ",
    "manyheads translate runs/one --output=te": "manyheads translate runs/one --output=text.de ",
    "manyheads data split --output=dee": "manyheads data split --output=deep/",
}
# By shell: the command that starts it; the bindings of Ctrl-X p (print the typed line) and Ctrl-U (delete it);
# and the command that loads the completion.
SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        """bind -x '"\\C-xp": printf "<%s>" "$READLINE_LINE"'; bind "set completion-query-items 0" """,
        'eval "$(manyheads completion bash)"',
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit; compinit -u -D; LISTMAX=1000; zle -N show; bindkey '^Xp' show; "
        "bindkey '^U' kill-whole-line; show() { print -rn -- \"<$BUFFER>\" }",
        'eval "$(manyheads completion zsh)"',
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        """bind \\cxp 'echo -n "<"(commandline)">"'; bind \\cu 'commandline ""'; bind \\t complete""",
        "manyheads completion fish | source",
    ),
}


@pytest.mark.parametrize(
    "name", ["bash", *(pytest.param(name, marks=pytest.mark.slow) for name in ("zsh", "fish"))]
)
@pytest.mark.skipif(sys.platform != "linux", reason="the test starts shells on a pseudo-terminal of Linux")
def test_a_shell_completes_a_typed_line(name: str, folder: Path) -> None:
    """Let the shell itself split the line into words, call the script, and add a space behind a complete word."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    shutil.copytree("runs/one", "runs/a,b")
    program = folder / "bin" / "manyheads"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m manyheads "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    command, keys, script = SHELLS[name]
    with Shell(command, {**os.environ, "PATH": path, "PYTHONPATH": str(SOURCE), "HOME": str(folder)}) as shell:
        shell.run(keys)
        shell.run(script)
        assert {line: shell.complete(line) for line in LINES} == LINES


class Shell:
    """An interactive shell on its own pseudo-terminal."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.terminal, inner = os.openpty()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env={**environment, "TERM": "dumb", "INPUTRC": os.devnull, "PS1": "$ ", "COLUMNS": "200"},
        )
        os.close(inner)

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)

    def run(self, command: str) -> None:
        """Run a command, and wait for its end."""
        os.write(self.terminal, f"{command}; echo en''d\n".encode())
        self.wait_for(r"end\r")

    def complete(self, line: str) -> str:
        """Type a line and Tab, and return the completed line."""
        os.write(self.terminal, f"{line}\t\x18p".encode())
        completed = self.wait_for(r"<(.*)>")[1]
        os.write(self.terminal, b"\x15")
        return completed

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read until a pattern occurs; fails after a minute without any output."""
        output = ""
        while not (match := re.search(pattern, output)):
            assert select.select([self.terminal], [], [], 60)[0], f"no {pattern} in {output!r}"
            output += os.read(self.terminal, 10_000).decode()
        return match
