"""Examine the text models of released versions of transformers: which class has which defect, and since when.

    python -m benchmarks.observatory FOLDER --since 5.19.0              all releases from it on that are missing
    python -m benchmarks.observatory FOLDER --releases 5.14.1 5.17.0    these releases

Each release is installed into an environment of its own under FOLDER, beside one torch for all, and removed after
`transformer-doctor scan transformers`; a stopped scan resumes. The models have random, seeded weights in float32.
What is found, and the published findings (observatory/published.toml), are asked again in each release by
observatory/confirm.py, which uses no check of the doctor. The results are added to the history,
observatory/summary.json. `python -m tools.observatory --write` makes pages of it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
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
NUMPY_1_BEFORE = (4, 46)  # releases before it were written for numpy 1
Row = Document


def number_of(release: str) -> tuple[int, ...]:
    """Return a release as numbers, by which releases are ordered."""
    return tuple(int(part) for part in release.split("."))


def missing_releases(since: str) -> list[str]:
    """Return the released versions from one on that the history lacks, the oldest first."""
    listing = [sys.executable, "-m", "pip", "index", "versions", "transformers"]
    text = subprocess.run(listing, check=True, stdout=subprocess.PIPE, text=True).stdout
    (line,) = re.findall("Available versions: (.*)", text)
    known = json.loads(SUMMARY.read_text(encoding="utf-8"))["releases"]
    found = sorted((release for release in line.split(", ") if release not in known), key=number_of)
    return [release for release in found if number_of(release) >= number_of(since)]


def install_release(folder: Path, release: str) -> Path:
    """Install a release into an environment of its own, and return its Python.

    Raises:
        subprocess.CalledProcessError: it cannot be installed.
    """
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    torch = next(line for line in pins if line.startswith("torch=="))
    shared = environment(folder / torch.replace("==", "-"), *BINARY, torch)
    packages = [f"transformers=={release}", "sentencepiece", "click"]
    packages += ["numpy<2"] if number_of(release) < NUMPY_1_BEFORE else []
    return environment(folder / release, *BINARY, *packages, beside=site_packages(shared))


def examine_release(python: Path, release: str, rows: Path, *options: str) -> Row:
    """Examine the models of a release, ask again about the findings, and return the results.

    Args:
        python: Python of the environment that holds it.
        release: its number.
        rows: file of the rows of models that are done.
        options: options of the scan; without any, no model is examined.
    """
    variables = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "packages" / "transformer-doctor" / "src")]),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "",  # else each model compiles the sources that it imports again
    }
    seconds = 0.0
    if options:
        scan = [python, "-m", "transformer_doctor", "scan", "transformers", "--rows", rows, *options]
        seconds, done = run_counted([*scan, "-o", rows.with_suffix(".txt")], env=variables, cwd=ROOT)
        if done.returncode > 1:  # 1: there are findings
            done.check_returncode()
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
        "examined": sorted(row["case"] for row in rows if "findings" in row),
        "findings": sorted(
            [row["case"], finding["name"], finding["evidence"]]
            for row in rows
            for finding in row.get("findings", [])
            if finding["severity"] != "note"
        ),
        **{
            reason: {row["case"]: row[key] for row in rows if key in row}
            for reason, key in {"refused": "crash", "ended": "failure", "not built": "left out"}.items()
        },
    }


def with_release(history: Row, result: Row) -> Row:
    """Return the history with the results of a release: the releases, and those that have each published finding.

    "named" and "not named" are the releases in which the doctor examined the model, "shown" and "not shown" those
    in which confirm.py asked; each list begins with the oldest release.
    """
    release = result["release"]
    examined = result.get("examined", ())
    before = {
        (entry["model"], entry["name"], entry["report"], entry["way"]): entry for entry in history["findings"]
    }
    findings = []
    for texts in published():
        words, pair = texts.pop("words"), [texts["model"], texts["name"]]
        old = before.get((*pair, texts["report"], texts["way"]), {})
        entry: Row = texts | {"evidence": old.get("evidence", "")}
        named = [text for *found, text in result.get("findings", ()) if found == pair and words in text]
        changes: Row = next((changes for *asked, changes in result.get("changes", ()) if asked == pair), {})
        change = changes.get(texts["way"])
        was_named = bool(named) if texts["model"] in examined else None
        for name, other, belongs in (
            ("named", "not named", was_named),
            ("shown", "not shown", None if change is None else bool(change)),
        ):
            for key, added in ((name, belongs), (other, belongs is False)):
                kept = {each for each in old.get(key, ()) if belongs is None or each != release}
                entry[key] = sorted(kept | ({release} if added else set()), key=number_of)
        if named and number_of(release) >= max(map(number_of, old.get("named") or [release])):
            text = named[-1]
            entry["evidence"] = next(part for part in text.split("; ") if words in part) if words else text
        findings.append(entry)
    number = result.get("not installed", len(examined) or history["releases"].get(release, 0))
    releases = history["releases"] | {release: number}
    return {"releases": {name: releases[name] for name in sorted(releases, key=number_of)}, "findings": findings}


def append_to_history(result: Row) -> None:
    """Add the results of a release to the committed history."""
    history = with_release(json.loads(SUMMARY.read_text(encoding="utf-8")), result)
    findings = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in history["findings"])
    text = f'{{"releases": {json.dumps(history["releases"])},\n"findings": [\n{findings}\n]}}\n'
    SUMMARY.write_text(text, encoding="utf-8")


def unpublished(result: Row) -> Iterator[str]:
    """Yield a line for each finding that is neither published nor listed as true of a sound model.

    A published finding has a line too where confirm.py shows it in a way that is not published.
    """
    known = tomllib.loads(TRUE_FINDINGS.read_text(encoding="utf-8"))["finding"] + published()
    changes = {(model, name): change for model, name, change in result.get("changes", ())}
    for model, name, evidence in result.get("findings", ()):
        listed = any(fnmatch(model, entry["model"]) and name == entry["name"] for entry in known)
        change = changes[model, name]
        ways = {entry["way"] for entry in published() if (entry["model"], entry["name"]) == (model, name)}
        if not listed or (ways and {way for way in change if change[way]} - ways):
            yield f"{result['release']} {model}: {name}: {evidence} (confirm.py: {change})"


def measure(options: argparse.Namespace) -> Document:
    """Examine releases, and add their results to the history."""
    if options.tiny:  # a model of the installed release
        tiny = ("--class", "ForCausalLM gpt2")
        return {
            "rows": [examine_release(Path(sys.executable), version("transformers"), options.folder / "rows", *tiny)]
        }
    folder = options.environments.resolve()
    lines: list[str] = []
    for release in [*options.releases, *(missing_releases(options.since) if options.since else ())]:
        try:
            python = install_release(folder, release)
        except subprocess.CalledProcessError as error:
            reason = (error.stderr or str(error)).strip().splitlines()[-1][:300]
            result = {"release": release, "not installed": reason}
        else:
            result = examine_release(
                python, release, folder / f"{release}.jsonl", "--seconds", str(options.seconds)
            )
        text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{release}.json").write_text(text, encoding="utf-8")
        append_to_history(result)
        lines += unpublished(result)
        if not options.keep:
            shutil.rmtree(folder / release, ignore_errors=True)
        print(release, {name: len(part) for name, part in result.items() if isinstance(part, list)} or result)
    return {"unpublished": lines}


OPTIONS = {
    "environments": option(Path, "folder of the environments and of the results", tiny=Path("."), required=True),
    "--releases": option(str, "releases to examine", nargs="+", default=[]),
    "--since": option(str, "examine all releases from this one on that the history lacks"),
    "--ask": option(False, "examine no model: only ask about published findings"),
    "--seconds": option(120.0, "seconds a model may take"),
    "--keep": option(False, "keep the environments"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="findings", packages=["transformers"])
