"""`completion`: the completion script of a shell, and the values that arguments and options complete to.

A function for `shell_complete` of an argument or option returns the values that begin with an incomplete word. The
functions import neither torch nor numpy, so that completion is fast.
"""

from __future__ import annotations

import ast
import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    shell_complete,
)

from manyheads.cli.verbs import VerbWithSubverbs, verb

__all__ = [
    "VERBS", "complete", "complete_configs", "complete_corpora", "complete_devices", "complete_exhibits",
    "complete_runs", "complete_settings", "complete_subjects", "complete_views",
]  # fmt: skip

VARIABLE = "_MANYHEADS_COMPLETE"
TASKS = {"language-modeling": "language model"}  # task -> its name in the list of views, where they differ


# --- values ---


def complete_configs(context: click.Context, parameter: click.Parameter, word: str) -> list[str]:
    """Complete the recipes and TOML files."""
    from manyheads.config.load import recipe_paths

    files = [path for path in paths(word) if path.endswith((".toml", "/")) and not is_run(path)]
    return matching([*verbs_below(context, parameter), *recipe_paths(), *files], word)


def complete_runs(context: click.Context, parameter: click.Parameter, word: str) -> list[CompletionItem[str]]:
    """Complete the run directories at the typed path and one level below it; without any, all directories."""
    runs = matching([*verbs_below(context, parameter), *run_directories(word)], word)
    return [CompletionItem(run) for run in runs] or [CompletionItem(word, type="dir")]


def complete_subjects(context: click.Context, parameter: click.Parameter, word: str) -> list[str]:
    """Complete run directories, recipes, TOML files, Python files, and the definitions in a Python file."""
    file, colon, name = word.rpartition(":")
    if colon and file.endswith(".py"):
        return [f"{file}:{defined}" for defined in matching(definitions(Path(file)), name)]
    programs = [path for path in paths(word) if path.endswith(".py")]
    return [*run_directories(word), *complete_configs(context, parameter, word), *programs]


def definitions(path: Path) -> list[str]:
    """Return the public functions and classes that a Python file defines, without running it."""
    try:
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except (OSError, ValueError, SyntaxError):
        return []
    names = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [name for name in names if not name.startswith("_")]


def complete_settings(context: click.Context, parameter: click.Parameter, word: str) -> list[str]:
    """Complete SECTION.KEY=VALUE: first the section, then the key, then the value if all values are known."""
    from manyheads.config.load.mistakes import known_settings

    schemas = {
        f"{section}.{key}".lstrip("."): schema
        for section, settings in known_settings().items()
        for key, schema in settings.items()
    }
    key, equals, _ = word.partition("=")
    if equals:
        return matching((f"{key}={value}" for value in choices(schemas.get(key, {}))), word)
    names = schemas if "." in word else dict.fromkeys(re.sub(r"\..*", ".", name) for name in schemas)
    return matching((name if name.endswith(".") else f"{name}=" for name in names), word)


def complete_views(context: click.Context, parameter: click.Parameter, word: str) -> list[str]:
    """Complete the views that the help of the verb lists; if RUN was typed before, only the views of its task."""
    listed = f"{context.command.help}\n\n{context.command.epilog}".partition("Views:")[2].split("\n\n")[0]
    by_task = dict(re.findall(r"^  (\S.*?) {2,}(.+(?:\n {10,}.+)*)", listed, re.MULTILINE))
    # click leaves the arguments in `args` when an option has no value yet
    task = task_of(Path(context.args[0])) if context.args else ""
    task_views = by_task.get(TASKS.get(task, task))
    shown = f"{task_views} {by_task['without TEXT']}" if task_views else " ".join(by_task.values()) or listed
    return matching(dict.fromkeys(re.findall(r"[a-z-]+", shown)), word)


def complete_exhibits(context: click.Context, parameter: click.Parameter, word: str) -> list[str]:
    """Complete the names of the exhibits of the museum."""
    from manyheads.doctor.museum import exhibits

    return matching((exhibit.name for exhibit in exhibits()), word)


def complete_findings(context: click.Context, parameter: click.Parameter, word: str) -> list[str]:
    """Complete the names of the findings of the doctor."""
    from manyheads.doctor.catalogue import CATALOGUE

    return matching({"list", *(name for findings in CATALOGUE.values() for name in findings)}, word)


def complete_corpora(context: click.Context, parameter: click.Parameter, word: str) -> list[str]:
    """Complete the names of the public corpora."""
    from manyheads.data.catalogue import CORPORA

    return matching(CORPORA, word)


def complete_devices(context: click.Context, parameter: click.Parameter, word: str) -> list[str]:
    """Complete the names of devices."""
    return matching(["auto", "cpu", "cuda"], word)


def matching(values: Iterable[str], word: str) -> list[str]:
    """Return the values that begin with a word."""
    return [value for value in values if value.startswith(word)]


def verbs_below(context: click.Context, parameter: click.Parameter) -> list[str]:
    """Return the verbs below the command, if the parameter is its first argument and not yet typed."""
    below = isinstance(context.command, VerbWithSubverbs) and not context.params.get(parameter.name or "")
    return list(context.command.commands) if below and isinstance(context.command, click.Group) else []


def paths(word: str) -> list[str]:
    """Return the paths that begin with a word; directories end in a slash."""
    matches = sorted(glob.glob(f"{glob.escape(word)}*"))
    return [f"{path}/" if Path(path).is_dir() else path for path in matches]


def run_directories(word: str) -> Iterator[str]:
    """Yield the run directories among the directories that begin with a word and those directly below them."""
    for path in paths(word):
        if is_run(path):
            yield path.removesuffix("/")
        elif path.endswith("/"):
            yield from (below.removesuffix("/") for below in paths(path) if is_run(below))


def is_run(path: str) -> bool:
    """Return whether a path is a run directory."""
    return path.endswith("/") and Path(path, "config.json").is_file()


def task_of(run: Path) -> str:
    """Return the task of a run, or "" if it cannot be read."""
    try:
        return str(json.loads((run / "config.json").read_text(encoding="utf-8"))["task"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def choices(schema: Mapping[str, Any]) -> list[str]:
    """Return the values of a setting that can be listed."""
    if schema.get("type") == "boolean":
        return ["true", "false"]
    if schema.get("type") == "null":
        return ["none"]
    listed = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    return [*map(str, listed), *(value for choice in schema.get("anyOf", ()) for value in choices(choice))]


# --- shells ---


class WholeWords(ShellComplete):
    """Completion for a shell that replaces whole words such as "--device=c", where click returns only values."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        """Return the items that complete a word, each with the "--option=" that the word begins with."""
        items = super().get_completions(args, incomplete)
        option, equals, _ = incomplete.partition("=")
        if equals and option.startswith("--"):
            for item in items:
                item.value = f"{option}={item.value}"
        return items


@add_completion_class
class Bash(WholeWords, BashComplete):
    """Completion for bash, which splits words at "=" and completes the text after it."""

    # No space after a section, a key or a directory: the word continues.
    source_template = BashComplete.source_template.replace(
        "    return 0\n", "    [[ ${COMPREPLY-} == *[=./] ]] && compopt -o nospace\n\n    return 0\n"
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the incomplete word, and this word, with the words around "=" joined."""
        before, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in (*before, incomplete):
            if words and (word == "=" or words[-1].endswith("=")):
                words[-1] += word
            else:
                words.append(word)
        *before, incomplete = words
        self.typed = incomplete[: incomplete.rfind("=") + 1]
        return before, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return a line for the script: the type, and the value without the typed text up to "="."""
        return f"{item.type},{item.value.removeprefix(self.typed)}"


@add_completion_class
class Zsh(WholeWords, ZshComplete):
    """Completion for zsh, without a space after a section, a key or a directory."""

    source_template = ZshComplete.source_template.replace(
        "compadd -U -V unsorted -a", 'compadd -U -V unsorted -S "${${completions[1]##*[=./]}:+ }" -a'
    ).replace("_path_files", "compset -P 1 '--*='; _path_files")


@add_completion_class
class Fish(WholeWords, FishComplete):
    """Completion for fish, with commas in paths and descriptions, and with paths behind "--option="."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","').replace(
        "__fish_complete_path $metadata[2]", """complete -C"'' "(commandline -ct)"""
    )


def complete(program: click.Group) -> int:
    """Answer the completion request of a shell, given in environment variables; return the exit code."""
    return shell_complete(program, {}, "manyheads", VARIABLE, os.environ[VARIABLE])


@verb("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes verbs, options, recipes, runs and settings in a shell."""
    make = get_completion_class(shell)
    assert make is not None
    script = make(context.find_root().command, {}, "manyheads", VARIABLE)
    click.echo(script.source(), nl=False)


VERBS = {"completion": completion}
