"""Docstrings of modules as Markdown, read from the source without importing it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = [
    "Definition",
    "class_signature",
    "escaped",
    "exported",
    "module_page",
    "module_tree",
    "object_page",
    "paragraphs",
    "public_methods",
    "signature",
]

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
SECTIONS = {"Args": "Arguments", "Returns": "Returns", "Raises": "Raises", "Attributes": "Attributes"}
SECTION = re.compile(rf"^({'|'.join([*SECTIONS, 'Yields'])}):$")
ENTRY = re.compile(r"^([\w*][\w*, ]*): (.*)$")


def module_tree(path: Path) -> ast.Module:
    """A module as a syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def exported(tree: ast.Module) -> list[str]:
    """The names of `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(ast.unparse(one) == "__all__" for one in node.targets):
            found: list[str] = ast.literal_eval(node.value)
            return found
    return []


def escaped(text: str) -> str:
    """A line of prose in which no `<` begins HTML and no `$` a formula, code left as it is."""
    parts = re.split(r"(`+[^`]*`+)", text)
    return "".join(part if place % 2 else re.sub(r"([<$\[])", r"\\\1", part) for place, part in enumerate(parts))


def paragraphs(docstring: str) -> Iterator[str]:
    """A docstring in Google's form as lines of Markdown."""
    lines = inspect.cleandoc(docstring).split("\n")
    fenced, section = False, False
    for line in lines:
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or line.lstrip().startswith("```"):
            yield line
        elif found := SECTION.match(line):
            section = True
            yield from ("", f"**{SECTIONS.get(found[1], found[1])}**", "")
        elif section and line.startswith("    ") and not line.startswith("     "):
            text = line.strip()
            entry = ENTRY.match(text)
            yield f"- `{entry[1]}`: {escaped(entry[2])}" if entry else f"  {escaped(text)}"
        elif section and line.startswith("    "):
            yield f"  {escaped(line.strip())}"
        else:
            section = section and not line
            yield escaped(line)
    yield ""


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    """The name, the arguments and the result on one line; `self` and `cls` left out."""
    arguments = node.args
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments = ast.arguments(
            posonlyargs=arguments.posonlyargs,
            args=arguments.args[1:],
            vararg=arguments.vararg,
            kwonlyargs=arguments.kwonlyargs,
            kw_defaults=arguments.kw_defaults,
            kwarg=arguments.kwarg,
            defaults=arguments.defaults,
        )
    result = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return f"{name}({ast.unparse(arguments)}){result}"


def class_signature(node: ast.ClassDef) -> str:
    """The name, and what it is made from where it says so itself."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return signature(method, node.name)
    return node.name


def public_methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those with a docstring whose name does not begin with an underscore."""
    for method in node.body:
        named = isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and not method.name.startswith("_")
        if named and ast.get_docstring(method):  # type: ignore[arg-type]
            yield method  # type: ignore[misc]


def object_page(node: Definition, options: Sequence[str] = ()) -> Iterator[str]:
    """A class with its methods, or a function, as a directive of Sphinx's Python domain."""
    if isinstance(node, ast.ClassDef):
        yield from (f":::::{{py:class}} {class_signature(node)}", *options, "")
        yield from paragraphs(ast.get_docstring(node) or "")
        for method in public_methods(node):
            decorators = {ast.unparse(one) for one in method.decorator_list}
            kind = "property" if {"property", "cached_property"} & decorators else "method"
            how = [f":{name}:" for name in ("classmethod", "staticmethod") if name in decorators]
            head = method.name if kind == "property" else signature(method, method.name)
            yield from (f"::::{{py:{kind}}} {head}", *how, *options, "")
            yield from paragraphs(ast.get_docstring(method) or "")
            yield "::::"
        yield from (":::::", "")
    else:
        yield from (f":::::{{py:function}} {signature(node, node.name)}", *options, "")
        yield from paragraphs(ast.get_docstring(node) or "")
        yield from (":::::", "")


def module_page(name: str, tree: ast.Module) -> Iterator[str]:
    """A section for a module: what it says of itself, then its exported classes and functions."""
    yield from (f"## {name}", "", f":::{{py:module}} {name}", ":::", "")
    yield from paragraphs(ast.get_docstring(tree) or "")
    names = exported(tree)
    for node in tree.body:
        if isinstance(node, Definition) and node.name in names:
            yield from object_page(node)
