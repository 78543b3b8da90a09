"""Run a command of a page in the current directory, with settings that shorten it."""

from __future__ import annotations

import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import click
from tests.docs.page_files import WITH_CONFIDENCE, small, small_plan

from clusters import Cluster
from manyheads.cli.main import program
from manyheads.cli.main import run as run_program
from manyheads.cli.verbs import VerbWithSubverbs
from manyheads.config.load import load_config
from manyheads.config.schema import Config

ROOT = Path(__file__).parent.parent.parent
# Commands that no test can run: beginning of the command -> reason.
CANNOT_BE_RUN = {
    "docker build": "needs a container engine",
    "docker run": "needs a container engine; the arguments of the image are only parsed",
    'python -c "import argostranslate': "installs for Argos Translate; run in tests/interop/test_argos.py",
    "uv pip install": "needs PyTorch's index; the Makefile's use is tried in tests/test_install.py",
    "argos-translate": "fetches a model itself; run without that in tests/interop/test_argos.py",
    "libretranslate": "a server of another project, which fetches models itself",
    "jupyter lab": "opens a browser; the notebooks are run in test_notebooks.py",
    "first=$(scontrol": "needs Slurm",
    "REPOSITORY=": "is filled in by the reader",
    "git clone": "needs the address of the repository",
    "cd ": "changes to the cloned directory",
    ". .venv/bin/activate": "changes the shell of the reader",
    "sudo ": "changes the machine; tests/docs/test_deploy.py reads the files that it starts",
    "curl -s https://translate.example.org": "asks the server of the reader",
    "weblate ": "a program of another project",
}
PLACEHOLDERS = {"RUN": "runs/multi30k-de-en"}
# 24 updates fit into two minutes on any machine; the number is reported after 20.
FEW_UPDATES = ("training.steps=24", "training.warmup_steps=6", "training.save_every=12")
# Settings of a page that take too long, or are meant for more text, and their replacements.
REPLACED_SETTINGS = {
    "training.max_minutes=2": ("training.max_minutes=2", *FEW_UPDATES),
    "training.max_minutes=20": ("training.max_minutes=20", *FEW_UPDATES),
    "tokenizer.vocab_size=30000": ("tokenizer.vocab_size=3000",),
}
# Beginnings of commands that are run once for all pages, because their output does not depend on the directory. The
# prepared run stands for that of a second demo.
CACHED_COMMANDS = ("manyheads doctor museum", "manyheads show-config", "manyheads demo", "make demo")
CACHED_OUTCOMES: dict[str, Outcome] = {}
SCHEDULER = "tcp://127.0.0.1:8786"  # the address of `dask scheduler` on the page
CLUSTERS: list[Cluster] = []  # one for each `dask scheduler` so far
COMPLETION = re.compile(r"_MANYHEADS_COMPLETE=(\w+)_source manyheads")


@dataclass(frozen=True)
class Outcome:
    """The result of a command.

    Attributes:
        code: the exit code.
        out: its output on stdout.
        printed: its output on stderr and then on stdout.
    """

    code: int
    out: str
    printed: str


DONE = Outcome(0, "", "")


def run(text: str) -> Outcome:
    """Run a line that a reader types.

    Raises:
        AssertionError: the line names a target of make or an extra that does not exist.
        KeyError: `RUNNERS` has no function for the program of the line.
    """
    if COMPLETION.search(text):
        return complete(text)
    if text not in CACHED_OUTCOMES:
        words, stdin = split(text)
        outcome = RUNNERS[words[0]](words, stdin)
        if not text.startswith(CACHED_COMMANDS):
            return outcome
        CACHED_OUTCOMES[text] = outcome
    return CACHED_OUTCOMES[text]


def split(text: str) -> tuple[list[str], str]:
    """Return the words of the program of a line, and its stdin: a text, or a file as "<FILE".

    A redirection of stdout is dropped.
    """
    words = shlex.split(text, comments=True)
    while re.match(r"\w+=", words[0]):
        words = words[1:]
    if words[0] == "srun":
        words = words[1:]
    if "|" in words:
        index = words.index("|")
        assert words[0] == "echo"
        return words[index + 1 :], " ".join(words[1:index]) + "\n"
    if "<" in words:
        index = words.index("<")
        return words[:index], f"<{words[index + 1]}"
    return words[: words.index(">")] if ">" in words else words, ""


def parse_command(arguments: list[str]) -> click.Context:
    """Parse the arguments of a command line without running it; errors of click are raised."""
    command: click.Command = program
    context, rest = click.Context(program, info_name="manyheads"), list(arguments)
    while isinstance(command, click.Group) and rest:
        own_argument = isinstance(command, VerbWithSubverbs) and rest[0] not in command.commands
        if own_argument or rest[0].startswith("-"):
            break
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, context = found, click.Context(found, info_name=name, parent=context)
    return command.make_context(context.info_name, rest)


# --- the program itself ---


def run_manyheads(words: list[str], stdin: str = "") -> Outcome:
    """Run the program in this process, because a new process takes seconds to start."""
    addresses = {SCHEDULER: CLUSTERS[-1].address} if CLUSTERS else {}
    arguments = shorten([(PLACEHOLDERS | addresses).get(word, word) for word in words[1:]])
    text = Path(stdin[1:]).read_text(encoding="utf-8") if stdin.startswith("<") else stdin
    with streams(text) as (out, err), small_demo():
        code = run_program(arguments)
    texts = [stream.getvalue().decode() for stream in (out, err)]
    return Outcome(code, texts[0], texts[1] + texts[0])


def shorten(arguments: list[str]) -> list[str]:
    """Return a command line that takes a moment; its own settings are kept, except those in `REPLACED_SETTINGS`."""
    arguments = [part for word in arguments for part in replacement(word)]
    verb, *rest = arguments
    settings: list[str] = []
    if rest and verb == "train" and rest[0] != "average":
        settings = small(rest[0])
    elif rest and verb == "doctor" and rest[0] != "museum" and not Path(rest[0]).is_dir():
        settings = small(rest[0], "training.steps=2000")  # no update of these steps is trained
    elif rest and verb == "build":
        settings = small_plan(rest[0])
    added = [word for setting in settings for word in ("--set", setting)]
    return [verb, *rest[:1], *added, *rest[1:]] if added else arguments


def replacement(word: str) -> list[str]:
    """Return a word of a command line or its replacement; the option `--set` of the first is before it already."""
    first, *more = REPLACED_SETTINGS.get(word, (word,))
    return [first, *(part for setting in more for part in ("--set", setting))]


@contextmanager
def streams(stdin: str) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Replace stdin, stdout and stderr."""
    out, err = io.BytesIO(), io.BytesIO()
    wrapped = [
        io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in (io.BytesIO(stdin.encode()), out, err)
    ]
    with mock.patch.multiple(sys, stdin=wrapped[0], stdout=wrapped[1], stderr=wrapped[2]):
        yield out, err
    for stream in wrapped:
        stream.detach()


@contextmanager
def small_demo() -> Iterator[None]:
    """Load the recipe of `demo`, which has no `--set`, with the small settings."""
    module = importlib.import_module("manyheads.runs.demo")

    def load_small(path: Path, overrides: Sequence[str]) -> Config:
        return load_config(path, [*overrides, *small(str(path), WITH_CONFIDENCE)])

    with mock.patch.object(module, "load_config", load_small):
        yield


# --- other programs ---


def run_torchrun(words: list[str], stdin: str) -> Outcome:
    """Parse the options of torchrun, and run its program as a single process here.

    `tests/training/test_distributed.py` launches processes; that takes ten seconds.
    """
    from torch.distributed.run import parse_args

    options = parse_args(words[1:])
    assert options.module
    assert options.training_script == "manyheads"
    return run_manyheads(["manyheads", *options.training_script_args])


def run_make(words: list[str], stdin: str) -> Outcome:
    """Look up the target, and run the lines of its recipe that call manyheads."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    target = re.search(rf"^{words[1]}:.*\n((?:\t.*\n)*)", makefile, re.MULTILINE)
    assert target is not None, f"the Makefile has no {words[1]}"
    lines = re.findall(r"^\t\$\(VENV\)/bin/(manyheads .*)$", target[1], re.MULTILINE)
    outcomes = [run_manyheads(shlex.split(line)) for line in lines]
    return outcomes[-1] if outcomes else DONE


def run_pip(words: list[str], stdin: str) -> Outcome:
    """Check that the package, its extras and the file of constraints exist."""
    assert words[1] == "install"
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if words[2] == "-c":
        assert (ROOT / words.pop(3)).is_file()
        words.remove("-c")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    for word in words[2:]:
        if word == "-e" or any(pin.startswith(f"{word}==") for pin in pins):
            continue
        found = re.fullmatch(r"(?:manyheads|\.)(?:\[(.*)\])?", word)
        assert found or (ROOT / word / "pyproject.toml").is_file(), word
        assert not found or not found[1] or set(found[1].split(",")) <= extras, word
    return DONE


def run_uv(words: list[str], stdin: str) -> Outcome:
    """Check a line that chooses the torch for a machine."""
    words.remove("--torch-backend=auto")
    return run_pip(words[1:], stdin)


def run_python(words: list[str], stdin: str) -> Outcome:
    """Run a script of benchmarks/ in its shortest form, in a process of its own, which it sets up."""
    settings = [word for setting in small(words[2]) for word in ("--set", setting)]
    command = [sys.executable, str(ROOT / words[1]), *words[2:], *settings, "--tiny"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    return Outcome(done.returncode, done.stdout, done.stderr + done.stdout)


def run_docker(words: list[str], stdin: str) -> Outcome:
    """Parse the arguments of the image."""
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    if words[1] == "run":
        assert 'ENTRYPOINT ["manyheads"]' in dockerfile
        parse_command(words[words.index("manyheads") + 1 :])
    return DONE


def run_dask(words: list[str], stdin: str) -> Outcome:
    """Start a scheduler at a free port, or a worker; later commands reach it by the address on the page."""
    program = importlib.import_module(f"distributed.cli.dask_{words[1]}")
    program.main.make_context(f"dask {words[1]}", words[2:])
    if words[1] == "scheduler":
        CLUSTERS.append(Cluster(Path(tempfile.mkdtemp()), 0))
    else:
        CLUSTERS[-1].add()
    return DONE


def close_clusters() -> None:
    """Stop the processes that `dask` has started."""
    while CLUSTERS:
        CLUSTERS.pop().close()


def complete(text: str) -> Outcome:
    """Run a line of a shell's start file: the whole line in bash, its inner command for other shells."""
    found = COMPLETION.search(text)
    assert found is not None
    line = f"{text}; complete -p manyheads" if found[1] == "bash" else found[0]
    Path("bin").mkdir(exist_ok=True)
    Path("bin/manyheads").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m manyheads "$@"\n')
    Path("bin/manyheads").chmod(0o755)
    path = f"{Path('bin').absolute()}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, env=os.environ | {"PATH": path}, check=False)
    assert done.stdout, done
    out = done.stdout.decode()
    return Outcome(done.returncode, out, done.stderr.decode() + out)


RUNNERS: dict[str, Callable[[list[str], str], Outcome]] = {
    "manyheads": run_manyheads,
    "torchrun": run_torchrun,
    "make": run_make,
    "pip": run_pip,
    "uv": run_uv,
    "python": run_python,
    "docker": run_docker,
    "dask": run_dask,
}
