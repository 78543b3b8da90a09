"""Examine the text models of released versions of transformers: which class has which defect, and since when.

    python -m benchmarks.observatory FOLDER --releases 5.14.1 5.17.0    examine, one file of results a release
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
import tomllib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path

from benchmarks.harness import Document, environment, main, option, run_counted, site_packages

ROOT = Path(__file__).parents[1]
SUMMARY = ROOT / "observatory" / "summary.json"
PUBLISHED = ROOT / "observatory" / "published.toml"
TRUE_FINDINGS = ROOT / "benchmarks" / "doctor_trial" / "true_findings.toml"
BINARY = ("--no-compile", "--only-binary", ":all:")
EXAMINE = "import sys; from benchmarks.doctor_trial import sound; sound.examine_library(*sys.argv[1:])"
NUMPY_1_BEFORE = (4, 46)  # releases before it were written for numpy 1
Row = Document


def number_of(release: str) -> tuple[int, ...]:
    """Return a release as numbers, by which releases are ordered."""
    return tuple(int(part) for part in release.split("."))


def install_release(folder: Path, release: str) -> Path:
    """Install a release into an environment of its own, and return its Python.

    Raises:
        subprocess.CalledProcessError: it cannot be installed.
    """
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    torch = next(line for line in pins if line.startswith("torch=="))
    shared = environment(folder / torch.replace("==", "-"), *BINARY, torch)
    packages = [f"transformers=={release}", "sentencepiece"]
    packages += ["numpy<2"] if number_of(release) < NUMPY_1_BEFORE else []
    return environment(folder / release, *BINARY, *packages, beside=site_packages(shared))


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
        examination = [python, "-c", EXAMINE, rows, *options]
        seconds, _ = run_counted(examination, check=True, env=variables, cwd=ROOT)
    lines = rows.read_text(encoding="utf-8").splitlines() if rows.exists() else []
    result = summary(release, [json.loads(line) for line in lines])
    asked = [*result["findings"], *((entry["model"], entry["name"]) for entry in published())]
    pairs = sorted({(model, name) for model, name, *_ in asked})
    asking, answers = run_counted(
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
        print(release, {name: len(part) for name, part in result.items() if isinstance(part, list)} or result)
        yield result


def measure(options: argparse.Namespace) -> Document:
    """Examine releases; without any, write the summary of those that are examined."""
    if options.tiny:  # a model of the installed release
        tiny = ("60", "ForCausalLM gpt2")
        return {
            "rows": [examine_release(Path(sys.executable), version("transformers"), options.folder / "rows", *tiny)]
        }
    rows = list(examined_releases(options.environments.resolve(), options))
    if not options.releases:
        results = [json.loads(path.read_text(encoding="utf-8")) for path in options.environments.glob("*.json")]
        parts = joined(results)
        findings = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in parts["findings"])
        text = f'{{"releases": {json.dumps(parts["releases"])},\n"findings": [\n{findings}\n]}}\n'
        SUMMARY.write_text(text, encoding="utf-8")
        return {"unpublished": [*unpublished(results)]}
    return {"rows": rows}


OPTIONS = {
    "environments": option(Path, "folder of the environments and of the results", tiny=Path("."), required=True),
    "--releases": option(str, "releases to examine", nargs="+", default=[]),
    "--only": option(str, 'models, such as "ForCausalLM gpt2" (default: all)', nargs="+", default=[]),
    "--ask": option(False, "examine no model: only ask about published findings"),
    "--seconds": option(120.0, "seconds a model may take"),
    "--keep": option(False, "keep the environments"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="findings", packages=["transformers"])
