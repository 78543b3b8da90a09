"""Packages import only from layers below their own, only some open files, and the doctor imports none of them."""

from __future__ import annotations

import ast
import functools
import sys
from pathlib import Path

import pytest

from manyheads.config.schema import TASKS

SOURCE = Path(__file__).parent.parent / "src" / "manyheads"
DOCTOR = Path(__file__).parent.parent / "packages" / "transformer-doctor" / "src"

# Layers from the highest to the lowest. A package imports from lower layers alone, not from its own one.
LAYERS = [
    {"cli"},
    {"serving"},
    {"build"},
    {"runs"},
    {"doctor"},
    {"checks", "tasks"},
    {"interop"},
    {"decoding"},
    {"training", "evaluation", "inspection"},
    {"checkpoint"},
    {"model", "text", "data", "search", "config.load"},
    {"config.schema"},
    {"files"},
    {"errors", "languages", "shell"},
]
LAYER_OF = {package: len(LAYERS) - depth for depth, packages in enumerate(LAYERS) for package in packages}
MAY_OPEN_FILES = {"files", "build", "runs", "cli", "serving", "checkpoint", "interop", "data", "config.load"}
LEGACY = "interop.weights"
OPENERS = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "save_file", "load_file", "memmap"}


def package_of(module: str) -> str:
    """Return the package of a module: "model.attention" -> "model", "config.load.toml" -> "config.load"."""
    head, _, tail = module.partition(".")
    return f"config.{tail.partition('.')[0]}" if head == "config" and tail else head


def modules() -> dict[str, Path]:
    """Return the file of every module by its dotted name below manyheads."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@functools.cache
def tree_of(name: str) -> ast.Module:
    """Return a parsed module; cached, so that collecting the tests parses nothing."""
    return ast.parse(MODULES[name].read_text(encoding="utf-8"), str(MODULES[name]))


def imports(tree: ast.Module) -> list[tuple[int, str]]:
    """Return line and module below manyheads of every import of our own modules."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found += [(node.lineno, name.removeprefix("manyheads.")) for name in names if name.startswith("manyheads")]
    return found


def imported_names(tree: ast.Module) -> list[ast.alias]:
    """Return the names that a module imports from our own modules."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [alias for node in found if str(node.module).startswith("manyheads") for alias in node.names]


@pytest.mark.parametrize("name", [name for name in MODULES if package_of(name) in LAYER_OF])
def test_packages_import_from_lower_layers_alone(name: str) -> None:
    package = package_of(name)
    for line, imported in imports(tree_of(name)):
        other = package_of(imported)
        if other == package or other not in LAYER_OF:
            continue
        lower = LAYER_OF[other] < LAYER_OF[package]
        assert lower, f"manyheads.{name}, line {line}: {package} may not import {other}"


def test_the_doctor_imports_torch_alone_and_nothing_of_manyheads() -> None:
    """It names the pip line of an optional package where it is missing; pytest imports its plugin."""
    optional = {"click", "sacrebleu", "transformers", "pytest"}
    allowed = {*sys.stdlib_module_names, "transformer_doctor", "torch", *optional}
    files = sorted(DOCTOR.rglob("*.py"))
    assert files
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= allowed, f"{path}: {names}"


def test_every_package_has_a_layer() -> None:
    packages = {package_of(name) for name in MODULES if name not in ("", "__main__", "config")}
    assert packages <= set(LAYER_OF), f"no layer for {sorted(packages - set(LAYER_OF))}"


def opens_no_file(name: str) -> bool:
    """Return whether a module is in a package that may not open files."""
    return package_of(name) in LAYER_OF.keys() - MAY_OPEN_FILES and not name.startswith("decoding.native")


@pytest.mark.parametrize("name", [name for name in MODULES if opens_no_file(name)])
def test_only_some_packages_open_files(name: str) -> None:
    tree = tree_of(name)
    own = {alias.asname or alias.name for alias in imported_names(tree)}  # `read_text` of `data.reading`, say
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if isinstance(node.func, ast.Name) and called in own:
                continue
            assert called not in OPENERS, f"manyheads.{name}, line {node.lineno}: {called}() opens a file"


def test_search_calls_two_methods_of_a_model() -> None:
    """A model needs these two methods of `Stepper` to be searched, and search imports only our errors."""
    tree = tree_of("search.interface")
    stepper = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Stepper")
    assert [node.name for node in stepper.body if isinstance(node, ast.FunctionDef)] == ["step", "select"]
    for name in MODULES:
        if package_of(name) == "search":
            assert all(package_of(other) in ("search", "errors") for _, other in imports(tree_of(name))), name


def test_no_pickle_is_read_or_written_but_for_legacy_weights() -> None:
    """Models and state are safetensors and JSON; nothing that can run code is read or written.

    One call reads the pickle of a legacy model after --trust-pickle, by the restricted reader of torch.
    """
    calls = [node for node in ast.walk(tree_of(LEGACY)) if isinstance(node, ast.Call)]
    loads = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "load"]
    assert len(loads) == 1
    restricted = {option.arg: option.value for option in loads[0].keywords}["weights_only"]
    assert isinstance(restricted, ast.Constant)
    assert restricted.value is True
    for name in MODULES:
        for node in ast.walk(tree_of(name)):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "")}
                assert not names & {"pickle", "dill", "joblib", "shelve", "marshal"}, f"manyheads.{name}"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
                allowed = name == LEGACY and node.attr == "load"
                assert allowed or node.attr not in ("load", "save"), f"manyheads.{name}: torch.{node.attr}"


def test_the_schema_imports_neither_torch_nor_other_packages() -> None:
    """Reading a configuration must stay fast."""
    for name in (name for name in MODULES if package_of(name) == "config.schema"):
        tree = tree_of(name)
        assert not [other for _, other in imports(tree) if package_of(other) not in ("config.schema", "errors")]
        roots = {
            alias.name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert "torch" not in roots


def task_name_constants(node: ast.AST) -> list[ast.Constant]:
    """Return the names of tasks with which something is compared, or by which it is looked up.

    "translation" is also a word and a column of data, so that it counts in comparisons alone.
    """
    if isinstance(node, (ast.Compare, ast.MatchValue)):
        found, names = ast.walk(node), set(TASKS)
    elif isinstance(node, ast.Dict):
        found, names = iter(filter(None, node.keys)), TASKS.keys() - {"translation"}
    elif isinstance(node, ast.Subscript):
        found, names = iter([node.slice]), TASKS.keys() - {"translation"}
    else:
        return []
    return [part for part in found if isinstance(part, ast.Constant) and part.value in names]


def test_what_differs_between_tasks_is_asked_of_the_task_and_not_of_its_name() -> None:
    """A new task is then a folder and an entry in the registry: no other module knows its name."""
    for name in MODULES.keys() - {"config.schema.tasks"}:
        for node in ast.walk(tree_of(name)):
            for constant in task_name_constants(node):
                raise AssertionError(f'manyheads.{name}, line {constant.lineno}: "{constant.value}" is compared')
