"""Write the reference of the book as plain Markdown: settings, commands, names, recipes and the doctor's findings.

    python -m tools.reference           compare docs/reference with the code; exit code 1 if a file differs
    python -m tools.reference --write   write the files

The files are committed, so that they can be read in the repository without building the documentation. Settings
come from the schema of the configuration, commands from their `--help`, names from signatures and docstrings.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import click

import manyheads
from manyheads.cli.main import program
from manyheads.cli.recipes import MEASURED, headline
from manyheads.config.load import json_schema, recipe_paths
from manyheads.config.load.mistakes import number
from tools.docstrings import class_signature, escaped, module_tree, paragraphs, public_methods, signature
from tools.findings import findings_page

PACKAGE = Path(manyheads.__file__).parent
FOLDER = Path(__file__).parent.parent / "docs" / "reference"
BANNER = "<!-- Written by `python -m tools.reference --write`. Edit the code instead. -->"
HELP_WIDTH = 100  # characters
ROLE = re.compile(r":\w+:(?=`)")  # a role of reStructuredText before code


def pages() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    pages_by_name = {
        "settings.md": settings_page(),
        "commands.md": commands_page(),
        "names.md": names_page(),
        "recipes.md": recipes_page(),
        "findings.md": findings_page("en"),
        "../ko/findings.md": chain(findings_page("ko"), ["<!-- reference/findings.md in Korean -->"]),
    }
    return {name: "\n".join([BANNER, "", *lines]).rstrip("\n") + "\n" for name, lines in pages_by_name.items()}


# --- settings ---


def settings_page() -> Iterator[str]:
    """Yield every setting with its type, default and meaning, a table a section."""
    schema = json_schema()
    properties: Mapping[str, Any] = schema["properties"]
    yield from (
        "# Settings",
        "",
        "Every setting of a configuration file. `manyheads show-config` prints the same as TOML that you can edit,",
        "and `manyheads show-config --schema` prints JSON Schema for editors.",
        'A setting whose default is `"none"` is switched off.',
        "",
        "## The task",
        "",
    )
    yield from setting_lines({name: setting for name, setting in properties.items() if "$ref" not in setting})
    for section, section_reference in properties.items():
        if "$ref" in section_reference:
            section_schema = schema["$defs"][section_reference["$ref"].rpartition("/")[2]]
            yield from (f"## [{section}]", "", escaped(section_schema.get("description", "")), "")
            yield from setting_lines(
                {f"{section}.{name}": setting for name, setting in section_schema["properties"].items()}
            )


def setting_lines(settings: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a section for each setting: its type, its default and its meaning."""
    for name, setting in settings.items():
        default = (
            f", default `{json.dumps(setting['default'], ensure_ascii=False)}`" if "default" in setting else ""
        )
        meaning = escaped(str(setting.get("description", "")))
        yield from (f"### `{name}`", "", f"{meaning[:1].upper()}{meaning[1:]}.", "")
        yield from (f"Type: {type_text(setting)}{default}", "")


def type_text(setting: Mapping[str, Any]) -> str:
    """Return the type of a setting and its range in words."""
    if "enum" in setting:
        return "one of " + ", ".join(f"`{json.dumps(value)}`" for value in setting["enum"])
    if "$ref" in setting:
        return "a section"
    if "const" in setting:
        return f"`{json.dumps(setting['const'])}`"
    if "anyOf" in setting:
        return " or ".join(dict.fromkeys(type_text(alternative) for alternative in setting["anyOf"]))
    words = {
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "string": "text",
        "array": "list",
    }
    signs = {"minimum": "≥", "exclusiveMinimum": "\\>", "maximum": "≤", "exclusiveMaximum": "\\<"}
    limits = " and ".join(f"{sign} {number(setting[key])}" for key, sign in signs.items() if key in setting)
    return words[setting["type"]] + (f" {limits}" if limits else "")


# --- commands ---


def commands_page() -> Iterator[str]:
    """Yield the help text of every command, and a section for each of its options."""
    yield from (
        "# Commands",
        "",
        "What `manyheads COMMAND --help` prints, with an address for each option. Every command also has the",
        "options of `manyheads` itself.",
        "",
    )
    yield from command_lines(program, "manyheads", None)


def command_lines(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    """Yield the help text of a command and its options, then those of its subcommands."""
    context = click.Context(
        command, info_name=name, parent=parent, color=False, terminal_width=HELP_WIDTH, max_content_width=HELP_WIDTH
    )
    yield from (f"## {context.command_path}", "", "```text", help_text(command, context), "```", "")
    shared = {
        "--help",
        *(option for parameter in program.get_params(context) for option in parameter.opts if parent is not None),
    }
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record is not None and not shared & set(parameter.opts):
            yield from option_lines(context.command_path.removeprefix("manyheads "), parameter, *record)
    if isinstance(command, click.Group):
        for subcommand_name in command.list_commands(context):
            subcommand = command.get_command(context, subcommand_name)
            if subcommand is not None:
                yield from command_lines(subcommand, subcommand_name, context)


def help_text(command: click.Command, context: click.Context) -> str:
    """Return the help text of a command; without the options, which have sections, unless it has subcommands."""
    if isinstance(command, click.Group):
        return command.get_help(context)
    formatter = context.make_formatter()
    command.format_usage(context, formatter)
    command.format_help_text(context, formatter)
    command.format_epilog(context, formatter)
    return formatter.getvalue().strip("\n")


def option_lines(command: str, parameter: click.Parameter, forms: str, text: str) -> Iterator[str]:
    """Yield a section for an option: a heading with its longest name, its forms and its help."""
    yield from (f"### {command} {max(parameter.opts, key=len)}", "")
    yield from (f"`{forms}`", "", escaped(" ".join(text.split())), "")


# --- public names ---


def names_page() -> Iterator[str]:
    """Yield the public names: signatures, and the first paragraph of each docstring."""
    yield from ("# Public names", "", "Import them from `manyheads`; each is loaded when it is first used.", "")
    for name in manyheads.__all__:
        yield from name_lines(definition(manyheads._LAZY[name], name))


def name_lines(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """Yield a class with its methods, or a function."""
    heading = class_signature(node) if isinstance(node, ast.ClassDef) else signature(node, node.name)
    yield from (f"## `{node.name}`", "", "```python", heading, "```", "", *first_paragraph(node), "")
    for method in public_methods(node) if isinstance(node, ast.ClassDef) else ():
        decorators = {ast.unparse(decorator) for decorator in method.decorator_list}
        prefix = f"{node.name}." if {"classmethod", "staticmethod"} & decorators else "."
        is_property = bool({"property", "cached_property"} & decorators)
        heading = f".{method.name}" if is_property else prefix + signature(method, method.name)
        yield from ("```python", heading, "```", "", *first_paragraph(method), "")


def first_paragraph(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[str]:
    """Yield the first paragraph of a docstring."""
    for line in paragraphs(ast.get_docstring(node) or ""):
        if not line:
            return
        yield ROLE.sub("", line)


def definition(module: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """Return the definition of a public name; follow imports.

    Raises:
        LookupError: the module neither defines nor imports the name.
    """
    tree = module_tree(module_file(module))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("manyheads."):
            continue
        if any((alias.asname or alias.name) == name for alias in node.names):
            return definition(node.module or "", name)
    raise LookupError(f"{module} has no {name}")


def module_file(name: str) -> Path:
    """Return the file of a module of the package."""
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


# --- recipes ---


def recipes_page() -> Iterator[str]:
    """Yield a section for each recipe: its description and its measured results."""
    yield from ("# Recipes", "", "`manyheads init DIR --from RECIPE` copies a recipe for you to edit.", "")
    for name, path in recipe_paths().items():
        summary = headline(path.read_text(encoding="utf-8"))
        yield from (f"## {name}", "", escaped(summary["description"]), "")
        yield from (f"**{MEASURED}** {escaped(summary['measured'] or 'not yet.')}", "")
        yield from (f"The file: [recipes/{path.name}](../../recipes/{path.name})", "")


def main() -> int:
    """Compare the files with the code, or write them; return the exit code."""
    parser = argparse.ArgumentParser(description="Write the reference of the book as plain Markdown.")
    parser.add_argument("--write", action="store_true", help="Write the files instead of comparing them.")
    write = parser.parse_args().write
    differing = [
        name
        for name, text in pages().items()
        if not (FOLDER / name).is_file() or (FOLDER / name).read_text(encoding="utf-8") != text
    ]
    for name in differing:
        if write:
            (FOLDER / name).write_text(pages()[name], encoding="utf-8")
        print(f"{'written' if write else 'out of date'}: docs/reference/{name}")
    if differing and not write:
        print("Write them: python -m tools.reference --write")
    return int(bool(differing) and not write)


if __name__ == "__main__":
    raise SystemExit(main())
