"""Convert docstrings of modules to Markdown, from the source, without importing the modules."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
SECTIONS = {"Args": "Arguments", "Returns": "Returns", "Raises": "Raises", "Attributes": "Attributes"}
SECTION = re.compile(rf"^({'|'.join([*SECTIONS, 'Yields'])}):$")
ENTRY = re.compile(r"^([\w*][\w*, ]*): (.*)$")


def module_tree(path: Path) -> ast.Module:
    """Parse the source of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def exported(tree: ast.Module) -> list[str]:
    """Return the names in `__all__`, or without it the public functions and classes of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in node.targets):
            names: list[str] = ast.literal_eval(node.value)
            return names
    return sorted(node.name for node in tree.body if isinstance(node, Definition) and not node.name.startswith("_"))


def escaped(text: str) -> str:
    """Escape `<`, `$` and `[` in a line of prose, but not in code."""
    parts = re.split(r"(`+[^`]*`+)", text)
    return "".join(part if index % 2 else re.sub(r"([<$\[])", r"\\\1", part) for index, part in enumerate(parts))


def paragraphs(docstring: str) -> Iterator[str]:
    """Yield a Google-style docstring as lines of Markdown."""
    lines = inspect.cleandoc(docstring).split("\n")
    fenced, section = False, False
    for line in lines:
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or line.lstrip().startswith("```"):
            yield line
        elif heading := SECTION.match(line):
            section = True
            yield from ("", f"**{SECTIONS.get(heading[1], heading[1])}**", "")
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
    """Return the signature of a function on one line, without `self` and `cls`."""
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
    """Return the name of a class with the arguments of `__init__`, of a dataclass those that its fields give it."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return signature(method, node.name)
    if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        fields = [ast.unparse(field) for field in node.body if isinstance(field, ast.AnnAssign)]
        return f"{node.name}({', '.join(fields)})"
    return node.name


def public_methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the methods that have a docstring and a name without a leading underscore."""
    for method in node.body:
        is_public = isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and not method.name.startswith("_")
        if is_public and ast.get_docstring(method):  # type: ignore[arg-type]
            yield method  # type: ignore[misc]


def object_page(node: Definition, options: Sequence[str] = ()) -> Iterator[str]:
    """Yield a class with its methods, or a function, as a directive of Sphinx's Python domain."""
    if isinstance(node, ast.ClassDef):
        yield from (f":::::{{py:class}} {class_signature(node)}", *options, "")
        yield from paragraphs(ast.get_docstring(node) or "")
        for method in public_methods(node):
            decorators = {ast.unparse(decorator) for decorator in method.decorator_list}
            kind = "property" if {"property", "cached_property"} & decorators else "method"
            flags = [f":{name}:" for name in ("classmethod", "staticmethod") if name in decorators]
            heading = method.name if kind == "property" else signature(method, method.name)
            yield from (f"::::{{py:{kind}}} {heading}", *flags, *options, "")
            yield from paragraphs(ast.get_docstring(method) or "")
            yield "::::"
        yield from (":::::", "")
    else:
        yield from (f":::::{{py:function}} {signature(node, node.name)}", *options, "")
        yield from paragraphs(ast.get_docstring(node) or "")
        yield from (":::::", "")


def module_page(name: str, tree: ast.Module) -> Iterator[str]:
    """Yield a section for a module: its docstring, then its exported classes and functions."""
    yield from (f"## {name}", "", f":::{{py:module}} {name}", ":::", "")
    yield from paragraphs(ast.get_docstring(tree) or "")
    names = exported(tree)
    for node in tree.body:
        if isinstance(node, Definition) and node.name in names:
            yield from object_page(node)
