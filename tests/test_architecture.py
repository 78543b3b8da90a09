"""Packages import only from lower rows, only some open files, and the doctor imports torch alone.

The contracts of imports are in pyproject.toml (`[tool.importlinter]`); here is what import-linter cannot express.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from manyheads.config.schema import TASKS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "manyheads"
DOCTOR = ROOT / "packages" / "transformer-doctor" / "src"

MAY_OPEN_FILES = {"__main__", "build", "checkpoint", "cli", "config.load", "data", "decoding.native",
                  "decoding.threads", "files", "interop", "runs", "serving", "web"}  # fmt: skip
OPENERS = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "save_file", "load_file", "memmap"}
LEGACY = "interop.weights"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}


@functools.cache
def nodes_of(name: str) -> list[ast.AST]:
    """Return the nodes of a parsed module, which is the first."""
    return list(ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"), str(MODULES[name]))))


def imported_modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_the_contracts_of_imports_are_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Layers, no circle inside packages either, a doctor without manyheads, a schema without torch, no pickle."""
    monkeypatch.chdir(ROOT)
    code = lint_imports(no_cache=True, no_logo=True)
    assert code == 0, capsys.readouterr().out


def test_the_doctor_imports_torch_alone() -> None:
    """It names the pip line of an optional package where it is missing; pytest imports its plugin."""
    optional = {"click", "sacrebleu", "transformers", "pytest"}
    allowed = {*sys.stdlib_module_names, "transformer_doctor", "torch", *optional}
    files = sorted(DOCTOR.rglob("*.py"))
    assert files
    for path in files:
        names = imported_modules(ast.parse(path.read_text(encoding="utf-8")))
        assert {name.partition(".")[0] for name in names} <= allowed, path


def may_open_files(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in MAY_OPEN_FILES or ".".join(parts[:2]) in MAY_OPEN_FILES


def test_only_some_packages_open_files() -> None:
    for name in MODULES:
        found = [] if may_open_files(name) else nodes_of(name)
        imports = [node for node in found if isinstance(node, ast.ImportFrom)]
        ours = [alias for node in imports if str(node.module).startswith("manyheads") for alias in node.names]
        own = {alias.asname or alias.name for alias in ours}  # `read_text` of `data.reading`, say
        for node in found:
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if isinstance(node.func, ast.Name) and called in own:
                    continue
                assert called not in OPENERS, f"manyheads.{name}, line {node.lineno}: {called}() opens a file"


def test_search_calls_two_methods_of_a_model() -> None:
    """A model needs these two methods of `Stepper` to be searched."""
    classes = (node for node in nodes_of("search.interface") if isinstance(node, ast.ClassDef))
    stepper = next(node for node in classes if node.name == "Stepper")
    assert [node.name for node in stepper.body if isinstance(node, ast.FunctionDef)] == ["step", "select"]


def test_torch_reads_no_pickle_but_legacy_weights() -> None:
    """One call reads the pickle of a legacy model after --trust-pickle, by the restricted reader of torch."""
    for name in MODULES:
        for node in nodes_of(name):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
                allowed = name == LEGACY and node.attr == "load"
                assert allowed or node.attr not in ("load", "save"), f"manyheads.{name}: torch.{node.attr}"
    calls = [node for node in nodes_of(LEGACY) if isinstance(node, ast.Call)]
    loads = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "load"]
    assert len(loads) == 1
    restricted = {option.arg: option.value for option in loads[0].keywords}["weights_only"]
    assert isinstance(restricted, ast.Constant)
    assert restricted.value is True


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
        for node in nodes_of(name):
            for constant in task_name_constants(node):
                raise AssertionError(f'manyheads.{name}, line {constant.lineno}: "{constant.value}" is compared')
