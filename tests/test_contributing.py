"""CONTRIBUTING.md is correct: its call sequences name files and functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAX_FILES, MAX_LINE_LENGTH = 12, 120
CALL_SEQUENCES = (
    "### From `manyheads translate` to the C code and back",
    "### From `manyheads train` to one update",
)

# A number, the path as text and as link, and the description of the file.
STEP = re.compile(r"^\d+\. \[`([^`]+)`\]\(([^)]+)\):\s+(.*?)(?=^\d+\. |\n\n)", re.MULTILINE | re.DOTALL)
# At the beginning of a line: type and name of a C function, its parameters, and the brace of its body.
C_FUNCTION = re.compile(r"^[A-Za-z][\w *]*?\b(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)


def steps(sequence: str) -> list[tuple[str, str, list[str]]]:
    """Return each file of a call sequence: its path as text, its link, and the functions that are named."""
    section = TEXT.split(f"{sequence}\n", 1)[1].split("\n#", 1)[0] + "\n\n"
    return [
        (path, link, re.findall(r"`([\w.]+)\(\)`", description))
        for path, link, description in STEP.findall(section)
    ]


def functions(path: Path) -> set[str]:
    """Return the functions that a Python file or a C file defines, methods by "Class.method"."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return set(C_FUNCTION.findall(text))
    found = set()
    for node in ast.parse(text).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        before = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        found |= {before + one.name for one in inside if isinstance(one, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("sequence", CALL_SEQUENCES)
def test_a_call_sequence_names_at_most_twelve_files_each_once(sequence: str) -> None:
    paths = [path for path, _, _ in steps(sequence)]
    assert 2 < len(paths) <= MAX_FILES
    assert len(set(paths)) == len(paths)
    assert len(paths) == len(re.findall(r"^\d+\. ", TEXT.split(sequence, 1)[1].split("\n#", 1)[0], re.MULTILINE))


@pytest.mark.parametrize(
    ("path", "link", "named"), [step for sequence in CALL_SEQUENCES for step in steps(sequence)]
)
def test_a_file_of_a_call_sequence_has_the_functions_that_are_named(path: str, link: str, named: list[str]) -> None:
    assert link == f"src/manyheads/{path}"
    assert (ROOT / link).is_file(), f"CONTRIBUTING.md names {link}, which does not exist."
    assert named, f"CONTRIBUTING.md names no function of {path}."
    missing = set(named) - functions(ROOT / link)
    assert not missing, f"{link} does not define {', '.join(sorted(missing))}, which CONTRIBUTING.md names."


def test_a_function_of_c_is_distinguished_from_a_call_and_a_declaration(tmp_path: Path) -> None:
    source = tmp_path / "x.c"
    source.write_text("static int64_t one(int a,\n    Team team) {\n    two(a);\n}\nvoid three(void);\n")
    assert functions(source) == {"one"}


def test_the_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([\w-]+)`", TEXT):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([^):#]+)\)", TEXT))))
def test_the_target_of_a_link_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_package_is_in_the_table_of_packages() -> None:
    folders = {path.parent.name for path in (ROOT / "src" / "manyheads").glob("*/__init__.py")}
    rows = re.findall(r"^\| (`.*?) \|", TEXT.split("## Where things are")[1].split("###")[0], re.MULTILINE)
    mapped = {name.split("/")[0] for row in rows for name in re.findall(r"`([\w/]+)`", row)}
    assert mapped == folders | {"errors", "files", "languages", "shell"}


def test_lines_do_not_exceed_the_maximum_length() -> None:
    """Ignore rows of tables, which cannot be wrapped."""
    long = [line for line in TEXT.splitlines() if len(line) > MAX_LINE_LENGTH and not line.startswith("|")]
    assert long == []
