"""The reference pages, written from the package itself each time the book is built.

Public names and rooms come from docstrings, settings from the configuration's schema, verbs from their `--help`.
"""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from docstrings import escaped, module_page, module_tree, object_page, paragraphs
from sphinx.application import Sphinx

import manyheads
from manyheads.cli.main import program
from manyheads.cli.recipes import MEASURED, headline
from manyheads.config.load import json_schema, recipe_paths

__all__ = ["setup"]

PACKAGE = Path(manyheads.__file__).parent
HIDDEN = {"cli", "museum"}  # programs to run or to read, not to call
BANNER = ["<!-- Written by docs/_ext/reference.py; edit the docstrings instead. -->", ""]
WIDTH = 100


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for pages."""
    app.connect("builder-inited", lambda app: write_all(Path(app.srcdir)))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_all(docs: Path) -> None:
    """Write every generated page, and the schema for editors beside the book."""
    folder = docs / "reference" / "generated"
    pages = {
        "public": public_page(),
        "settings": settings_page(),
        "verbs": verbs_page(),
        "recipes": recipes_page(),
        **room_pages(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for stale in {path.stem for path in folder.glob("*.md")} - set(pages):
        (folder / f"{stale}.md").unlink()
    for name, lines in pages.items():
        write_if_other(folder / f"{name}.md", "\n".join([*BANNER, *lines]) + "\n")
    generated = docs / "_generated"
    shutil.rmtree(generated, ignore_errors=True)
    generated.mkdir()
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    (generated / "manyheads.schema.json").write_text(schema, encoding="utf-8")


def write_if_other(path: Path, text: str) -> None:
    """Leave a page alone that has not changed, so that it is not built again."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def module_file(name: str) -> Path:
    """Where a module of the package lies."""
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def definition(module: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """Where a public name is defined, imports followed."""
    tree = module_tree(module_file(module))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
        ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("manyheads.")
        if ours and any((one.asname or one.name) == name for one in node.names):
            return definition(node.module, name)
    raise LookupError(f"{module} has no {name}")


def public_page() -> Iterator[str]:
    """What `from manyheads import ...` gives."""
    yield from ("# The public names", "", "Imported from `manyheads` itself; loaded when first used.", "")
    for name in manyheads.__all__:
        yield from object_page(definition(manyheads._LAZY[name], name), [":no-index:"])


def room_pages() -> dict[str, Iterable[str]]:
    """A page for each folder of the package, and one for the errors."""
    rooms = sorted(path.parent for path in PACKAGE.glob("*/__init__.py") if path.parent.name not in HIDDEN)
    return {
        **{f"room-{room.name}": list(room_page(room)) for room in rooms},
        "room-errors": ["# errors", "", *module_page("manyheads.errors", module_tree(PACKAGE / "errors.py"))],
    }


def room_page(room: Path) -> Iterator[str]:
    """The modules of a room, those of its inner folders too."""
    yield from (f"# {room.name}", "", *paragraphs(ast.get_docstring(module_tree(room / "__init__.py")) or ""))
    for path in sorted(room.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        if path.stem != "__init__" and not HIDDEN & set(inside.parts):
            yield from module_page(".".join(["manyheads", *inside.with_suffix("").parts]), module_tree(path))


def settings_page() -> Iterator[str]:
    """Every setting with its type, default and meaning."""
    schema = json_schema()
    yield from (
        "# Every setting",
        "",
        "From the schema of the configuration. `manyheads show-config` prints the same as TOML that can be edited,",
        "`manyheads show-config --schema` JSON Schema for editors (`manyheads.schema.json` in the built book).",
        'A setting that may be left out altogether is switched off with `"none"`.',
        "",
    )
    for name, setting in schema["properties"].items():
        if "$ref" not in setting and "allOf" not in setting:
            yield from setting_lines(name, setting)
    for section, holder in schema["properties"].items():
        if "$ref" in holder:
            part = schema["$defs"][holder["$ref"].rpartition("/")[2]]
            yield from ("", f"## [{section}]", "", part.get("description", ""), "")
            for name, setting in part["properties"].items():
                yield from setting_lines(f"{section}.{name}", setting)


def setting_lines(name: str, setting: Mapping[str, Any]) -> Iterator[str]:
    """A term and what it means."""
    default = "" if "default" not in setting else f", default `{json.dumps(setting['default'])}`"
    yield from (f"({name})=", f"`{name}`", f": {kind(setting)}{default}.")
    meaning = escaped(str(setting.get("description", "")))
    yield from (f"  {meaning[:1].upper()}{meaning[1:]}.", "")


def kind(setting: Mapping[str, Any]) -> str:
    """The type of a setting in words."""
    if "enum" in setting:
        return "one of " + ", ".join(f"`{json.dumps(value)}`" for value in setting["enum"])
    if "const" in setting:
        return f"`{json.dumps(setting['const'])}`"
    if "anyOf" in setting:
        return " or ".join(dict.fromkeys(kind(one) for one in setting["anyOf"]))
    words = {
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "string": "text",
        "array": "list",
    }
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = " and ".join(f"{sign} {setting[key]:g}" for key, sign in signs.items() if key in setting)
    return words[setting["type"]] + (f" {limits}" if limits else "")


def recipes_page() -> Iterator[str]:
    """What each recipe trains, what was measured, and all of it."""
    yield from ("# Recipes", "", "`manyheads init DIR --from RECIPE` copies one to edit.", "")
    for name, path in recipe_paths().items():
        text = path.read_text(encoding="utf-8")
        found = headline(text)
        yield from (f"## {name}", "", escaped(found["description"]), "")
        yield from (f"**{MEASURED}** {escaped(found['measured'] or 'not yet.')}", "")
        yield from ("```toml", text.rstrip("\n"), "```", "")


def verbs_page() -> Iterator[str]:
    """What `--help` of every verb says."""
    yield from (
        "# Every verb",
        "",
        "What `manyheads VERB --help` prints.",
        "",
        *verb_lines(program, "manyheads", None),
    )


def verb_lines(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    """The help of a command, then of those below it."""
    context = click.Context(
        command, info_name=name, parent=parent, color=False, terminal_width=WIDTH, max_content_width=WIDTH
    )
    yield from (f"## {context.command_path}", "", "```", command.get_help(context), "```", "")
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                yield from verb_lines(found, inner, context)
