"""Run a command of a page, in the current directory, as a person would but for the time that it takes."""

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import click
from tests.clusters import Cluster
from tests.docs.workbench import small, small_plan

from manyheads.cli.main import program
from manyheads.cli.main import run as run_program
from manyheads.cli.verbs import VerbWithSubverbs
from manyheads.config.load import load_config

__all__ = ["CANNOT_BE_RUN", "INSTEAD", "RUNNERS", "Outcome", "close_clusters", "parsed", "run", "split"]

ROOT = Path(__file__).parent.parent.parent
# What no test can run, by how it begins, and why.
CANNOT_BE_RUN = {
    "docker build": "needs a container engine",
    "docker run": "needs a container engine; what the image is given is only parsed",
    "argospm": "a program of Argos Translate",
    "argos-translate": "a program of Argos Translate, which fetches a model itself",
    "libretranslate": "a server of others, which fetches models itself",
    "jupyter lab": "opens a browser; the notebooks are run in test_notebooks.py",
    "first=$(scontrol": "asks Slurm",
    "git clone": "needs the address of the repository",
    "cd ": "goes to what was cloned",
    ". .venv/bin/activate": "changes the shell of the reader",
    "sudo ": "changes the machine; tests/docs/test_deploy.py reads the files that it starts",
    "weblate ": "a program of others",
}
PLACEHOLDERS = {"RUN": "runs/multi30k-de-en"}
# 50 updates fit into two minutes on any machine; after 30 the speed is known.
FEW = ("training.steps=50", "training.warmup_steps=10", "training.save_every=10")
# What a page sets that takes too long, or is meant for more text, and what is set instead.
INSTEAD = {
    "training.max_minutes=2": ("training.max_minutes=2", *FEW),
    "training.max_minutes=20": ("training.max_minutes=20", *FEW),
    "tokenizer.vocab_size=30000": ("tokenizer.vocab_size=3000",),
}
LASTING = ("doctor museum", "show-config")  # run once, as where does not matter
REMEMBERED: dict[tuple[str, ...], Outcome] = {}
SCHEDULER = "tcp://127.0.0.1:8786"  # where `dask scheduler` listens
CLUSTERS: list[Cluster] = []  # one for each `dask scheduler` so far
COMPLETION = re.compile(r"manyheads completion (\w+)")


@dataclass(frozen=True)
class Outcome:
    """What came of a command.

    Attributes:
        code: the exit code.
        out: what it wrote to stdout.
        printed: that, and before it what it wrote to stderr.
    """

    code: int
    out: str
    printed: str


DONE = Outcome(0, "", "")


def run(text: str) -> Outcome:
    """Run a line that a person types.

    Raises:
        AssertionError: it names something that there is not: a target of make, an extra.
        KeyError: nobody has said how such a line is run.
    """
    if text.startswith("eval "):
        return complete(text)
    words, given = split(text)
    return RUNNERS[words[0]](words, given)


def split(text: str) -> tuple[list[str], str]:
    """The words of the program of a line, and what it reads: a text, or a file as "<FILE".

    What it writes is not put into a file.
    """
    words = shlex.split(text, comments=True)
    while re.match(r"\w+=", words[0]):
        words = words[1:]
    if words[0] == "srun":
        words = words[1:]
    if "|" in words:
        place = words.index("|")
        assert words[0] == "echo"
        return words[place + 1 :], " ".join(words[1:place]) + "\n"
    if "<" in words:
        place = words.index("<")
        return words[:place], f"<{words[place + 1]}"
    return words[: words.index(">")] if ">" in words else words, ""


def parsed(arguments: list[str]) -> click.Context:
    """What the program makes of a command line, without running it; raises what click raises."""
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


def run_manyheads(words: list[str], given: str = "") -> Outcome:
    """Run the program in this process; starting another one takes seconds."""
    if tuple(words) in REMEMBERED:
        return REMEMBERED[tuple(words)]
    addresses = {SCHEDULER: CLUSTERS[-1].address} if CLUSTERS else {}
    arguments = quick([(PLACEHOLDERS | addresses).get(word, word) for word in words[1:]])
    text = Path(given[1:]).read_text(encoding="utf-8") if given.startswith("<") else given
    with streams(text) as (out, err), small_demo():
        code = run_program(arguments)
    texts = [stream.getvalue().decode() for stream in (out, err)]
    outcome = Outcome(code, texts[0], texts[1] + texts[0])
    if " ".join(words[1:]).startswith(LASTING):
        REMEMBERED[tuple(words)] = outcome
    return outcome


def quick(arguments: list[str]) -> list[str]:
    """A command line that takes a moment: what it sets itself still counts, but for what stands in `INSTEAD`."""
    arguments = [part for word in arguments for part in replaced(word)]
    verb = arguments[:2] if arguments[0] == "bench" else arguments[:1]
    rest = arguments[len(verb) :]
    measured = {("bench", "train"): ["--rounds", "1", "--updates", "1"],
                ("bench", "decode"): ["--rounds", "1", "--sentences", "4"]}.get(tuple(verb), [])  # fmt: skip
    settings: list[str] = []
    if rest and verb[-1] == "train" and rest[0] != "average":
        settings = small(rest[0])
    elif rest and verb == ["doctor"] and rest[0] != "museum" and not Path(rest[0]).is_dir():
        settings = small(rest[0], "training.steps=2000")  # it trains none of them
    elif rest and verb == ["build"]:
        settings = small_plan(rest[0])
    measured += [word for setting in settings for word in ("--set", setting)]
    return [*verb, *rest[:1], *measured, *rest[1:]] if measured else arguments


def replaced(word: str) -> list[str]:
    """A word of a command line, or what stands instead of it; `--set` stands before it already."""
    first, *more = INSTEAD.get(word, (word,))
    return [first, *(part for setting in more for part in ("--set", setting))]


@contextmanager
def streams(given: str) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Stand for stdin, stdout and stderr."""
    out, err = io.BytesIO(), io.BytesIO()
    wrapped = [io.TextIOWrapper(one, "utf-8", write_through=True) for one in (io.BytesIO(given.encode()), out, err)]
    with mock.patch.multiple(sys, stdin=wrapped[0], stdout=wrapped[1], stderr=wrapped[2]):
        yield out, err
    for one in wrapped:
        one.detach()


@contextmanager
def small_demo() -> Iterator[None]:
    """`demo` has no `--set`: its recipe is opened with the small settings."""
    module = importlib.import_module("manyheads.runs.demo")
    with mock.patch.object(
        module, "load_config", lambda path, overrides: load_config(path, [*overrides, *small(str(path))])
    ):
        yield


# --- other programs ---


def run_torchrun(words: list[str], given: str) -> Outcome:
    """Have torch read the options of its launcher, and run what it would launch as the one process here.

    `tests/training/test_distributed.py` launches processes; that takes ten seconds.
    """
    from torch.distributed.run import parse_args

    options = parse_args(words[1:])
    assert options.module
    assert options.training_script == "manyheads"
    return run_manyheads(["manyheads", *options.training_script_args])


def run_make(words: list[str], given: str) -> Outcome:
    """Look the target up, and run what of its recipe is a line of the program."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    target = re.search(rf"^{words[1]}:.*\n((?:\t.*\n)*)", makefile, re.MULTILINE)
    assert target is not None, f"the Makefile has no {words[1]}"
    lines = re.findall(r"^\t\$\(VENV\)/bin/(manyheads .*)$", target[1], re.MULTILINE)
    outcomes = [run_manyheads(shlex.split(line)) for line in lines]
    return outcomes[-1] if outcomes else DONE


def run_pip(words: list[str], given: str) -> Outcome:
    """Look the package, its extras and the file of constraints up."""
    assert words[1] == "install"
    if words[2] == "-c":
        assert (ROOT / words.pop(3)).is_file()
        words.remove("-c")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    for word in words[2:]:
        found = re.fullmatch(r"(?:manyheads|\.)(?:\[(.*)\])?", word)
        assert found or (ROOT / word / "pyproject.toml").is_file(), word
        assert not found or not found[1] or set(found[1].split(",")) <= extras, word
    return DONE


def run_docker(words: list[str], given: str) -> Outcome:
    """Read what the image is given."""
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    if words[1] == "run":
        assert 'ENTRYPOINT ["manyheads"]' in dockerfile
        parsed(words[words.index("manyheads") + 1 :])
    return DONE


def run_dask(words: list[str], given: str) -> Outcome:
    """Start a scheduler at a free port, or two workers of it; commands below find it at the address of the page."""
    program = importlib.import_module(f"distributed.cli.dask_{words[1]}")
    program.main.make_context(f"dask {words[1]}", words[2:])
    if words[1] == "scheduler":
        CLUSTERS.append(Cluster(Path(tempfile.mkdtemp()), 0))
    else:
        CLUSTERS[-1].add()
        CLUSTERS[-1].add()
    return DONE


def close_clusters() -> None:
    """End what `dask` has started."""
    while CLUSTERS:
        CLUSTERS.pop().close()


def complete(text: str) -> Outcome:
    """Run a line of a shell's start file: in bash as it stands, and for other shells what they would evaluate."""
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
    "docker": run_docker,
    "dask": run_dask,
}
