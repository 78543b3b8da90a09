"""Test the doctor: count untrue findings in sound models, and planted defects that it does not name.

    python -m benchmarks.doctor [--part sound|planted|held-out|watch] [--only WORDS] [--rows FOLDER] [--pairs]

sound      every text architecture of transformers that can be built small, models of x-transformers, timm and
           torchtune, nn.Transformer, tutorials: in float32, bfloat16 and float16, with two kinds of weights
planted    every defect of a model or of its training, in five models of different styles, float32 and bfloat16
held-out   further defects, chosen before the checks were looked at, real issues of a public set, sound twins
watch      what watching a training costs: 200 updates, width 256, 2,048 tokens, a vocabulary of 8,000

Run it from the root of the repository, with packages/transformer-doctor/tests in PYTHONPATH: some models are those
of its tests. Each case runs in a process of its own, with limits of time and memory. With --rows a stopped run
resumes. All weights are random and seeded. Findings that are true of a sound model are listed with the reason in
doctor_trial/true_findings.toml.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks.doctor_trial import defective, held_out, sound, trial, watched

from benchmarks import machine

Row = dict[str, Any]
PARTS: dict[str, tuple[Callable[[], list[str]], Callable[[str], list[Row]]]] = {
    "sound": (sound.names, sound.sound_case),
    "planted": (defective.names, defective.planted_case),
    "held-out": (held_out.names, held_out.held_out_case),
}
TRUE_FINDINGS = Path(trial.__file__).with_name("true_findings.toml")
TARGETS = {"named": 0.95, "noticed": 1.0}
HELD_OUT_TARGETS = {
    "float32": {"named": 0.90, "noticed": 0.97},
    "bfloat16": {"named": 0.85, "noticed": 0.95},
}
WATCHED_UPDATES = 200
TINY = (
    "peer host annotated / float32 own",
    "peer host decoder / float32 own",
    "decoder depends-on-the-batch float32",
    "gradients never cleared / float32",
)


def measured_rows(part: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of the cases of a part that the options select."""
    names, run = PARTS[part]
    chosen = defective.names(pairs=True) if part == "planted" and options.pairs else names()
    if part == "sound" and options.quick:
        chosen = sound.names(["float32 own"])
    if options.tiny:
        chosen = [name for name in chosen if name in TINY]
    if options.only:
        alternatives = [words.split("&") for words in options.only]
        chosen = [name for name in chosen if any(all(word in name for word in words) for words in alternatives)]
    store = None
    if options.rows is not None:
        options.rows.mkdir(parents=True, exist_ok=True)
        store = options.rows / f"{part}.jsonl"
    yield from trial.run_cases(chosen, run, trial.Limits(seconds=options.seconds, jobs=options.jobs), store)


def alarms(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the untrue findings of sound models, and the figures of the run."""
    known = tomllib.loads(TRUE_FINDINGS.read_text(encoding="utf-8"))["finding"]
    examined = [row for row in rows if "found" in row]
    crashes = [row for row in rows if "crash" in row]
    untrue_findings, true_findings = [], Counter[str]()

    def is_true(row: Row, name: str) -> bool:
        return any(fnmatch(row["model"], finding["model"]) and name == finding["name"] for finding in known)

    for row in examined:
        for name, severity, evidence in row["found"]:
            if severity == "note":
                continue
            if is_true(row, name):
                true_findings[f"{row['model']}: {name}"] += 1
            else:
                untrue_findings.append(
                    {"case": row["case"], "name": name, "severity": severity, "evidence": evidence}
                )
    return {
        "sound": [{"model": row["case"], "checks": row["asked"]} for row in examined],
        "models": Counter(library_of(case) for case, _ in {(row["case"], row["model"]) for row in examined}),
        "untrue": untrue_findings,
        "true": dict(true_findings),
        "crashes": [{"case": row["case"], "error": row["crash"]} for row in crashes if not is_true(row, "refused")],
        "failures": [{"case": row["case"], "error": row["failure"]} for row in rows if "failure" in row],
        "not built": {row["model"]: row["left out"] for row in rows if "left out" in row},
        "not called": sum("not called" in row for row in rows),
        "sound seconds": time_summary(examined),
    }


def library_of(case: str) -> str:
    """Return the library that the model of a case comes from."""
    group, name, *_ = case.split(" ")
    return "transformers" if group == "library" else name


def shares(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the shares of planted defects that were named, and that were noticed at all."""
    done = [row for row in rows if "missed" in row]
    planted = [row for row in done if " sound " not in row["case"]]
    return {
        "planted": len(planted),
        "named": sum(not row["missed"] for row in planted) / max(1, len(planted)),
        "noticed": sum(row["noticed"] for row in planted) / max(1, len(planted)),
        "by kind": counts_by_kind(planted),
        "missed": [{"case": row["case"], "found": finding_names(row)} for row in planted if row["missed"]],
        "beside": [{"case": row["case"], "found": row["beside"]} for row in done if row["beside"]],
        "planted failures": [
            {"case": row["case"], "error": row.get("failure") or row.get("crash")}
            for row in rows
            if "failure" in row or "crash" in row
        ],
        "planted seconds": time_summary(done),
    }


def held_out_shares(rows: Sequence[Row]) -> dict[str, Any]:
    """Return by precision the shares of held-out defects, what was missed, and the untrue findings."""
    document: dict[str, Any] = {}
    for precision in HELD_OUT_TARGETS:
        own = [row for row in rows if row.get("precision") == precision]
        defects = [row for row in own if "named" in row]
        document[precision] = {
            "defects": len(defects),
            **{share: sum(row[share] for row in defects) / max(1, len(defects)) for share in TARGETS},
            "sound": len(own) - len(defects),
            "missed": {row["case"]: finding_names(row) for row in defects if not row["named"]},
            "untrue": {row["case"]: row["untrue"] for row in own if row.get("untrue")},
        }
    failed = {row["case"]: row.get("failure") or row["crash"] for row in rows if {"failure", "crash"} & row.keys()}
    return {"held-out": document, "held-out failures": failed}


def counts_by_kind(planted: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Count the cases, those with all defects named and those noticed, by number of defects and precision."""
    counts: dict[str, Counter[str]] = {}
    for row in planted:
        _, defects, precision = row["case"].split(" ")
        kind = f"{'pairs' if '+' in defects else 'alone'} {precision}"
        counts.setdefault(kind, Counter()).update(
            cases=1, named=int(not row["missed"]), noticed=int(row["noticed"])
        )
    return {kind: dict(counter) for kind, counter in counts.items()}


def finding_names(row: Row) -> list[str]:
    """Return the names of the findings of a row."""
    return [name for name, _, _ in row.get("found", [])]


def time_summary(rows: Sequence[Row]) -> dict[str, float]:
    """Return the median and the longest time of the examinations."""
    seconds = [row["seconds"] for row in rows if "seconds" in row]
    return {"median": statistics.median(seconds), "longest": max(seconds)} if seconds else {}


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("--part", action="append", choices=[*PARTS, "watch"], help="only this (default: all)")
    parser.add_argument("--only", nargs="+", help="only cases whose names hold a word, or all words joined by &")
    parser.add_argument("--rows", type=Path, help="folder of the results so far, one JSON line a case")
    parser.add_argument("--pairs", action="store_true", help="also plant pairs of defects")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default 2)")
    parser.add_argument("--seconds", type=float, default=300.0, help="seconds a case may take (default 300)")
    parser.add_argument("--quick", action="store_true", help="sound models in float32 with their own weights alone")
    options = machine.parse(parser, tiny={"quick": True})
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    document: Row = {"unit": "s", **machine.about("transformers")}
    parts = options.part or [*PARTS, "watch"]
    if "sound" in parts:
        document |= alarms(list(measured_rows("sound", options)))
    if "planted" in parts:
        document |= shares(list(measured_rows("planted", options)))
    if "held-out" in parts:
        document |= held_out_shares(list(measured_rows("held-out", options)))
    if "watch" in parts:
        size = {"width": 16, "vocabulary": 50, "rows": 4} if options.tiny else {}
        document["watch"] = watched.watching_cost(4 if options.tiny else WATCHED_UPDATES, **size)
    document["seconds"] = time.perf_counter() - start
    if options.json:
        print(json.dumps(document))
    else:
        print("\n".join(report_lines(document, parts)))
        print(f"\n{document['seconds']:.0f} s, {machine.describe(machine.about('transformers'))}")


def report_lines(document: Row, parts: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the report."""
    if "sound" in parts:
        yield f"sound: {len(document['sound'])} examinations, {len(document['untrue'])} untrue errors or warnings"
        yield f"  models  {', '.join(f'{name} {count}' for name, count in document['models'].items())}"
        yield from (
            f"  untrue  {entry['case']}: {entry['name']}: {entry['evidence']}" for entry in document["untrue"]
        )
        yield from (f"  true    {finding} ({count} times)" for finding, count in document["true"].items())
        failed = document["crashes"] + document["failures"]
        yield from (f"  crash   {entry['case']}: {entry['error']}" for entry in failed)
        yield from (f"  left out  {name}: {reason}" for name, reason in document["not built"].items())
        yield f"  {document['not called']} models cannot compute in their precision"
        yield f"  seconds {document['sound seconds']}"
    if "planted" in parts:
        for share, target in TARGETS.items():
            yield f"planted: {share} {document[share]:.1%} of {document['planted']} (target {target:.0%})"
        for kind, count in document["by kind"].items():
            yield f"  {kind}: {count['named']} of {count['cases']} named, {count['noticed']} noticed"
        yield from (f"  missed  {entry['case']}: named {entry['found']}" for entry in document["missed"])
        yield from (f"  beside  {entry['case']}: {entry['found']}" for entry in document["beside"])
        yield from (f"  failed  {entry['case']}: {entry['error']}" for entry in document["planted failures"])
        yield f"  seconds {document['planted seconds']}"
    for precision, figures in document["held-out"].items() if "held-out" in parts else ():
        for share, target in HELD_OUT_TARGETS[precision].items():
            count = figures["defects"]
            yield f"held-out {precision}: {share} {figures[share]:.1%} of {count} (target {target:.0%})"
        yield f"  untrue findings in {len(figures['untrue'])} of {figures['sound']} sound cases"
        yield from (f"  untrue  {name}: {found}" for name, found in figures["untrue"].items())
        yield from (f"  missed  {name}: named {found}" for name, found in figures["missed"].items())
    if "held-out" in parts:
        yield from (f"  failed  {name}: {error}" for name, error in document["held-out failures"].items())
    if "watch" in parts:
        cost = document["watch"]
        yield f"watch: {cost['cost']:.1%} of {cost['updates']} updates (target 5 %)"


if __name__ == "__main__":
    main()
