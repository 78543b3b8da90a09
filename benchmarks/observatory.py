"""Examine the text models of released versions of transformers: which class has which defect, and since when.

    python -m benchmarks.observatory FOLDER --releases 5.14.1 5.17.0    examine, one file of results a release
    python -m benchmarks.observatory FOLDER --list                      the releases that can be installed
    python -m benchmarks.observatory FOLDER                             write observatory/summary.json from them

Each release is installed into an environment of its own under FOLDER, beside one torch for all, and removed after
its examination; a stopped examination resumes. Every class of the library's auto-model mappings that can be built
small is examined with random, seeded weights in float32. What is found, and the published findings
(observatory/published.toml), are asked again in each release by observatory/confirm.py, which uses no code of the
doctor. `python -m tools.observatory --write` makes pages of the summary.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import machine

ROOT = Path(__file__).parents[1]
SUMMARY = ROOT / "observatory" / "summary.json"
PUBLISHED = ROOT / "observatory" / "published.toml"
TRUE_FINDINGS = ROOT / "benchmarks" / "doctor_trial" / "true_findings.toml"
NUMPY_1_BEFORE = (4, 46)  # releases before it were written for numpy 1
Row = dict[str, Any]


def releases() -> list[str]:
    """Return the releases of transformers that can be installed, the newest first."""
    command = [sys.executable, "-m", "pip", "--quiet", "index", "versions", "transformers", "--json"]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    versions: list[str] = json.loads(listed)["versions"]
    return versions


def number_of(release: str) -> tuple[int, ...]:
    """Return a release as numbers, by which releases are ordered."""
    return tuple(int(part) for part in release.split("."))


def environment(folder: Path, *requirements: str, beside: Path | None = None) -> Path:
    """Return the Python of an environment with some packages; those of another environment are seen from it too.

    Raises:
        subprocess.CalledProcessError: a package cannot be installed.
    """
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(python)]
        subprocess.run(
            [*pip, "install", "--no-compile", "--only-binary", ":all:", *requirements],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        if beside is not None:
            line = f"import sys; sys.path.append({str(site_packages(beside))!r})\n"
            (site_packages(folder) / "beside.pth").write_text(line, encoding="utf-8")
        (folder / "complete").touch()
    return python


def site_packages(folder: Path) -> Path:
    return next((folder / "lib").glob("python*/site-packages"))


def install_release(folder: Path, release: str) -> Path:
    """Install a release into an environment of its own, and return its Python.

    Raises:
        subprocess.CalledProcessError: it cannot be installed.
    """
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    torch = next(line for line in pins if line.startswith("torch=="))
    shared = folder / torch.replace("==", "-")
    environment(shared, torch)
    numpy = ["numpy<2"] if number_of(release) < NUMPY_1_BEFORE else []
    return environment(folder / release, f"transformers=={release}", "sentencepiece", *numpy, beside=shared)


def examine_release(python: Path, release: str, rows: Path, *options: str) -> Row:
    """Examine the models of a release, ask again about the findings, and return the results.

    Args:
        python: Python of the environment that holds it.
        release: its number.
        rows: file of the rows of models that are done.
        options: seconds that a model may take, and models if not all are examined; without options none is.
    """
    variables = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "packages" / "transformer-doctor" / "src")]),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "",  # else each model compiles the sources that it imports again
    }
    seconds = 0.0
    if options:
        examination = [python, "-m", "benchmarks.doctor_trial.release", rows, *options]
        seconds, _ = machine.run_counted(examination, check=True, env=variables, cwd=ROOT)
    lines = rows.read_text(encoding="utf-8").splitlines() if rows.exists() else []
    result = summary(release, [json.loads(line) for line in lines])
    asked = [*result["findings"], *((entry["model"], entry["name"]) for entry in published())]
    pairs = sorted({(model, name) for model, name, *_ in asked})
    asking, answers = machine.run_counted(
        [python, ROOT / "observatory" / "confirm.py"],
        input=json.dumps(pairs), check=True, env=variables, cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    result["processor seconds"] = round(seconds + asking)
    result["changes"] = [
        [*pair, changes] for pair, changes in zip(pairs, json.loads(answers.stdout.splitlines()[-1]), strict=True)
    ]
    return result


def published() -> list[dict[str, str]]:
    """Return the published findings: model, name, class, report, way, and words of what the doctor says."""
    table = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))["finding"]
    return [
        {"model": model, "name": entry["name"], "class": name, "report": entry["report"],
         "way": entry.get("way", ""), "words": entry.get("words", "")}
        for entry in table for model, name in entry["models"].items()
    ]  # fmt: skip


def summary(release: str, rows: Sequence[Row]) -> Row:
    """Return the results of a release: findings that are no notes, and the models that were not examined."""
    return {
        "release": release,
        "examined": sorted(row["model"] for row in rows if "found" in row),
        "findings": sorted(
            [row["model"], name, evidence]
            for row in rows
            for name, severity, evidence in row.get("found", [])
            if severity != "note"
        ),
        "refused": {row["model"]: row["crash"] for row in rows if "crash" in row},
        "ended": {row["case"]: row["failure"] for row in rows if "failure" in row},
        "not built": {row["model"]: row["left out"] for row in rows if "left out" in row},
        "not called": sorted(row["model"] for row in rows if "not called" in row),
    }


def joined(results: Sequence[Row]) -> Row:
    """Return the committed document: the releases, and for each published finding those that have it.

    "named" and "not named" are the releases in which the doctor examined the model, "shown" and "not shown" those
    in which confirm.py asked; each list begins with the oldest release.
    """
    results = sorted(results, key=lambda result: number_of(result["release"]))
    findings = []
    for texts in published():
        words = texts.pop("words")
        pair = [texts["model"], texts["name"]]
        entry: Row = {**texts, "evidence": ""}
        lists: dict[str, list[str]] = {key: [] for key in ("named", "not named", "shown", "not shown")}
        for result in (result for result in results if "findings" in result):
            named = [text for *found, text in result["findings"] if found == pair and words in text]
            for text in named:
                entry["evidence"] = next(part for part in text.split("; ") if words in part) if words else text
            if texts["model"] in result["examined"]:
                lists["named" if named else "not named"].append(result["release"])
            changes: Row = next((changes for *asked, changes in result["changes"] if asked == pair), {})
            change = changes.get(texts["way"])
            if change is not None:
                lists["shown" if change else "not shown"].append(result["release"])
        findings.append(entry | lists)
    releases = {
        result["release"]: result.get("not installed", len(result.get("examined", ()))) for result in results
    }
    return {"releases": releases, "findings": findings}


def unpublished(results: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each finding that is neither published nor listed as true of a sound model."""
    known = tomllib.loads(TRUE_FINDINGS.read_text(encoding="utf-8"))["finding"] + published()
    for result in results:
        changes = {(model, name): change for model, name, change in result.get("changes", ())}
        for model, name, evidence in result.get("findings", ()):
            listed = any(fnmatch(model, entry["model"]) and name == entry["name"] for entry in known)
            if not listed:
                yield f"{result['release']} {model}: {name}: {evidence} (confirm.py: {changes[model, name]})"


def outcome(result: Row) -> str:
    """Return the result of a release in a line."""
    if "not installed" in result:
        return f"not installed: {result['not installed']}"
    return (
        f"{len(result['examined'])} models examined, {len(result['findings'])} findings, "
        f"{result['processor seconds']} s of processor time"
    )


def examined_releases(folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Examine releases, write a file of results for each, and yield the results."""
    examination = [] if options.ask else [str(options.seconds), *options.only]
    for release in options.releases:
        try:
            python = install_release(folder, release)
        except subprocess.CalledProcessError as error:
            reason = (error.stderr or str(error)).strip().splitlines()[-1][:300]
            result = {"release": release, "not installed": reason}
        else:
            result = examine_release(python, release, folder / f"{release}.jsonl", *examination)
        text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{release}.json").write_text(text, encoding="utf-8")
        if not options.keep:
            shutil.rmtree(folder / release, ignore_errors=True)
        yield result


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of the environments and of the results")
    parser.add_argument("--releases", nargs="+", default=[], help="releases to examine")
    parser.add_argument("--only", nargs="+", default=[], help='models, such as "ForCausalLM gpt2" (default: all)')
    parser.add_argument("--ask", action="store_true", help="examine no model: only ask about published findings")
    parser.add_argument("--list", action="store_true", help="print the releases that can be installed")
    parser.add_argument("--seconds", type=float, default=120.0, help="seconds a model may take (default 120)")
    parser.add_argument("--keep", action="store_true", help="keep the environments")
    options = machine.parse(parser, tiny={}, required=["folder"])
    if options.list:
        print("\n".join(releases()))
        return
    if options.tiny:  # a model of the installed release
        with tempfile.TemporaryDirectory() as folder:
            tiny = ("60", "ForCausalLM gpt2")
            rows = [examine_release(Path(sys.executable), version("transformers"), Path(folder, "rows"), *tiny)]
    else:
        rows = list(examined_releases(options.folder.resolve(), options))
    if options.json:
        print(json.dumps({"unit": "findings", **machine.about("transformers"), "rows": rows}))
        return
    for row in rows:
        print(row["release"], outcome(row), flush=True)
    if not options.tiny and not options.releases:
        results = [json.loads(path.read_text(encoding="utf-8")) for path in options.folder.glob("*.json")]
        parts = joined(results)
        findings = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in parts["findings"])
        text = f'{{"releases": {json.dumps(parts["releases"])},\n"findings": [\n{findings}\n]}}\n'
        SUMMARY.write_text(text, encoding="utf-8")
        print(*unpublished(results), sep="\n")


if __name__ == "__main__":
    main()
