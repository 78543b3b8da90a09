"""Held-out defects: edits of the texts of small models and trainings, and edits that leave them sound.

`held_out.txt` holds one set, and the files of `kinds/` a later one, written from kinds of faults, half of it after
public commits that mended one. A line "= FILE: EXPRESSION" begins the edits of a file, whose expression gives the
arguments of `examine`, a report, or a training to watch; the file itself is a sound case. A line "NAME | FINDINGS"
begins a defect that any of these findings names, without findings a sound case. Its lines with "-" are in the file
once, and those with "+" stand in their place. A line with "#" says where the defect was found, and the harm.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import GeneratorType, ModuleType
from typing import Any

import torch
from benchmarks.doctor_trial.sound import PRECISIONS, examination_row, judged

import specimens
import transformer_doctor
from transformer_doctor import Report, examine, watch

KINDS = Path(__file__).with_name("kinds")
FOLDERS = [KINDS, Path(__file__).parent, *map(Path, specimens.__path__)]
UPDATES = 20


@dataclass
class Case:
    """An edit of a file; `findings` of which each names its defect, none if it leaves the file sound."""

    file: str
    expression: str
    findings: tuple[str, ...] = ()
    edits: list[tuple[list[str], list[str]]] = field(default_factory=list)

    def text(self) -> str:
        """Return the edited text of the file.

        Raises:
            ValueError: a text to replace is not in the file, or more than once.
        """
        path = next(folder / self.file for folder in FOLDERS if (folder / self.file).exists())
        text = path.read_text(encoding="utf-8")
        for old, new in (("\n".join(lines) for lines in edit) for edit in self.edits):
            if text.count(old) != 1:
                raise ValueError(f"{self.file} holds {text.count(old)} times, in the place of once: {old}")
            text = text.replace(old, new)
        return text


@cache
def cases() -> dict[str, Case]:
    """Return the cases of `held_out.txt` by name."""
    return cases_of(Path(__file__).with_suffix(".txt"))


@cache
def kinds() -> dict[str, Case]:
    """Return the cases of all files in `kinds/` by name.

    Raises:
        ValueError: two files have a case of one name.
    """
    every = [case for path in sorted(KINDS.glob("*.txt")) for case in cases_of(path).items()]
    if len(dict(every)) < len(every):
        raise ValueError("two files of kinds/ have a case of one name")
    return dict(every)


def cases_of(path: Path) -> dict[str, Case]:
    found: dict[str, Case] = {}
    base = case = Case("", "")
    last = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        sign, rest = line[:2], line[2:]
        if sign == "# ":
            continue
        if sign == "= ":
            base = found[rest] = Case(*rest.split(": ", 1))
        elif sign == "- ":
            case.edits += [] if last == "- " else [([], [])]
            case.edits[-1][0].append(rest)
        elif sign == "+ ":
            case.edits[-1][1].append(rest)
        else:
            name, _, findings = line.partition(" |")
            case = found[name] = Case(base.file, base.expression, tuple(findings.split()))
        last = sign
    return found


def names() -> list[str]:
    """Return the names of the cases in both precisions."""
    return [f"{name} / {precision}" for precision in ("float32", "bfloat16") for name in cases()]


def kind_names() -> list[str]:
    """Return the names of the cases of kinds, in float32."""
    return [f"{name} / float32" for name in kinds()]


def held_out_case(case_name: str) -> list[dict[str, Any]]:
    """Return the row of a case: its findings, and whether they name its defect."""
    name, precision = case_name.split(" / ")
    case = cases().get(name) or kinds()[name]
    with tempfile.TemporaryDirectory() as folder:
        module = imported(Path(folder, f"edited_{case.file}"), case.text())
        torch.manual_seed(0)
        start = time.perf_counter()
        row = examination_row(lambda: report_of(module, case.expression, PRECISIONS[precision]))
    return [{**row, **judged(row, {*case.findings}), "seconds": time.perf_counter() - start}]


def imported(path: Path, text: str) -> ModuleType:
    """Write a module, and import it, so that findings can show its lines."""
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report_of(module: ModuleType, expression: str, precision: torch.dtype) -> Report:
    """Return the report of an expression that is evaluated in a precision; a function is called afterwards."""
    torch.set_default_dtype(precision)
    try:
        made = eval(expression, {"doctor": transformer_doctor} | vars(module))
        start = next(made) if isinstance(made, GeneratorType) else None
    finally:
        torch.set_default_dtype(torch.float32)
    if isinstance(made, dict):
        return examine(**made)
    if start is None:
        return made() if callable(made) else made
    model, optimizers, options = start
    with watch(model, optimizers, **options, on_finding=lambda finding: None) as seen:
        for _ in range(UPDATES):
            next(made)
    return seen.report
