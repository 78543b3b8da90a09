"""Exports that lie beside a run, compared with it (invariant O)."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from manyheads.config.load import config_to_json
from manyheads.config.schema import Config
from manyheads.doctor.catalogue import run_finding
from manyheads.doctor.report import Finding
from manyheads.errors import MissingExtraError, ParityError, RunError
from manyheads.interop.argos import check_argos
from manyheads.interop.carried import CARRIED
from manyheads.interop.ctranslate2 import check_ctranslate2, is_export
from manyheads.interop.marian import is_marian, read_marian
from manyheads.interop.opened import OpenedModel
from manyheads.interop.parity import Parity, Reference, compare, reference
from manyheads.runs.export import samples_of

__all__ = ["compare_exports"]


def compare_exports(run: Path, opened: OpenedModel) -> tuple[list[Finding], dict[str, str]]:
    """Findings, and what was compared, by the path of each export."""
    findings, facts = [], {}
    right: Reference | None = None
    for path in beside(run, opened.config):
        right = right or reference(opened.model, samples_of(opened.config, opened))
        try:
            facts[f"export {path.name}"] = compared(path, opened, right).line()
        except ParityError as error:
            findings.append(run_finding("export-differs", f"{path}: {error}"))
        except MissingExtraError as error:
            facts[f"export {path.name}"] = f"not compared: {error}"
        except RunError as error:
            findings.append(run_finding("export-differs", f"{path} cannot be read: {error}"))
    return findings, facts


def beside(run: Path, config: Config) -> Iterator[Path]:
    """What was exported of a run: inside it, or next to it under a name that begins with its own."""
    run = run.resolve()
    near = [path for path in run.parent.iterdir() if path.name.startswith(run.name) and path != run]
    for path in sorted([*run.iterdir(), *near]):
        document = carried_config(path)
        if document is not None:
            if document == json.loads(config_to_json(config)):
                yield path
        elif path.is_dir() and is_marian(path):
            yield path


def carried_config(path: Path) -> object | None:
    """The configuration that a CTranslate2 folder or an Argos package carries; None where it is neither."""
    if path.is_dir() and is_export(path):
        return json.loads((path / CARRIED).read_text(encoding="utf-8")).get("config", {})
    if path.suffix == ".argosmodel" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(f"model/{CARRIED}"):
                    return json.loads(archive.read(name)).get("config", {})
    return None


def compared(path: Path, opened: OpenedModel, right: Reference) -> Parity:
    """Compare one export; raises `ParityError`."""
    if path.suffix == ".argosmodel":
        return check_argos(path, opened, right)
    if is_export(path):
        return check_ctranslate2(path, right)
    back = reference(read_marian(path).model, right.samples)
    return compare(right, back.scores, back.outputs, "float32", "the MarianMT folder")
