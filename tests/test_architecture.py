"""The walls of the house: imports point down, and only some rooms open files."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "manyheads"

# From the roof to the ground. A room imports only from floors below its own, never from a neighbour.
FLOORS = [
    {"cli"},
    {"serving"},
    {"build"},
    {"runs"},
    {"doctor", "tasks"},
    {"interop"},
    {"decoding"},
    {"training", "evaluation", "inspection"},
    {"checkpoint"},
    {"model", "text", "data", "search", "config.load"},
    {"config.schema"},
    {"errors"},
]
FLOOR = {room: len(FLOORS) - height for height, rooms in enumerate(FLOORS) for room in rooms}
MAY_OPEN_FILES = {"build", "runs", "cli", "serving", "checkpoint", "interop", "data", "config.load"}
LEGACY = "interop.weights"
OPENERS = {"open", "read_text", "write_text", "read_bytes", "write_bytes", "save_file", "load_file", "memmap"}


def room_of(module: str) -> str:
    """The room of a module below manyheads: 'model.attention' -> 'model', 'config.load' -> 'config.load'."""
    head, _, tail = module.partition(".")
    return f"config.{tail.partition('.')[0]}" if head == "config" and tail else head


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name below manyheads."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@functools.cache
def tree_of(name: str) -> ast.Module:
    """A module, parsed when the first test needs it: not while each process collects the tests."""
    return ast.parse(MODULES[name].read_text(encoding="utf-8"), str(MODULES[name]))


def imports(tree: ast.Module) -> list[tuple[int, str]]:
    """(line, module below manyheads) of every import of our own package."""
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


@pytest.mark.parametrize("name", [name for name in MODULES if room_of(name) in FLOOR])
def test_imports_point_down(name: str) -> None:
    room = room_of(name)
    for line, imported in imports(tree_of(name)):
        other = room_of(imported)
        if other == room or other not in FLOOR:
            continue
        assert FLOOR[other] < FLOOR[room], f"manyheads.{name}, line {line}: {room} may not import {other}"


def test_every_module_stands_in_a_known_room() -> None:
    rooms = {room_of(name) for name in MODULES if name not in ("", "__main__", "config")}
    assert rooms <= set(FLOOR), f"no floor for {sorted(rooms - set(FLOOR))}"


def opens_no_file(name: str) -> bool:
    """Whether a module is in a room that may not open files."""
    return room_of(name) in FLOOR.keys() - MAY_OPEN_FILES and not name.startswith("decoding.native")


@pytest.mark.parametrize("name", [name for name in MODULES if opens_no_file(name)])
def test_only_some_rooms_open_files(name: str) -> None:
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            assert called not in OPENERS, f"manyheads.{name}, line {node.lineno}: {called}() opens a file"


def test_the_search_knows_two_methods_of_a_model() -> None:
    """A third method of `Stepper` needs a number that pays for it."""
    tree = tree_of("search.interface")
    stepper = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Stepper")
    assert [node.name for node in stepper.body if isinstance(node, ast.FunctionDef)] == ["step", "select"]
    for name in MODULES:
        if room_of(name) == "search":
            assert all(room_of(other) == "search" for _, other in imports(tree_of(name))), name


def test_no_pickle_anywhere_but_in_one_place_on_request() -> None:
    """Models and state are safetensors and JSON; nothing that can run code is read or written.

    One call reads the pickle of a legacy model that somebody vouches for, by torch's restricted reader.
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


def test_the_schema_stands_on_nothing() -> None:
    """Whoever reads a configuration waits for neither torch nor the rest of the package."""
    for name in (name for name in MODULES if room_of(name) == "config.schema"):
        tree = tree_of(name)
        assert not [other for _, other in imports(tree) if room_of(other) not in ("config.schema", "errors")]
        roots = {
            alias.name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert "torch" not in roots
