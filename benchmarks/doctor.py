"""Test the doctor: count untrue findings in sound models, and planted defects that it does not name.

    python -m benchmarks.doctor [--part sound planted held-out kinds] [--only WORDS] [--rows FOLDER] [--json]

sound      every text architecture of transformers that can be built small, models of x-transformers, timm and
           torchtune, nn.Transformer, tutorials: in float32, bfloat16 and float16, with two kinds of weights
planted    every defect of a model or of its training, in five models of different styles, float32 and bfloat16
held-out   further defects, chosen before the checks were looked at, real issues of a public set, sound twins
kinds      defects written from kinds of faults before any check was changed for them, half of them after public
           commits that mended one, and sound designs and trainings

Run it from the root of the repository, with packages/transformer-doctor/tests in PYTHONPATH: some models are those
of its tests. Each case runs in a process of its own, with limits of time and memory. With --rows a stopped run
resumes. All weights are random and seeded. Findings that are true of a sound model are listed with the reason in
doctor_trial/true_findings.toml.
"""

from __future__ import annotations

import argparse
import statistics
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from benchmarks.doctor_trial import defective, held_out, sound
from benchmarks.harness import Document, main, option

from transformer_doctor.cases import Limits, run_cases

PARTS: dict[str, tuple[Callable[[], list[str]], Callable[[str], list[Document]]]] = {
    "sound": (sound.names, sound.sound_case),
    "planted": (defective.names, defective.planted_case),
    "held-out": (held_out.names, held_out.held_out_case),
    "kinds": (held_out.kind_names, held_out.held_out_case),
}
TRUE_FINDINGS = Path(sound.__file__).with_name("true_findings.toml")
PRELOADED = (
    "transformers.models.auto.modeling_auto", "transformers.models.bert.modeling_bert", "sacrebleu",
    "transformer_doctor.examination", "benchmarks.doctor_trial.defective", "benchmarks.doctor_trial.held_out",
)  # fmt: skip
TARGETS = {  # shares of planted and of held-out defects that shall be named, and noticed at all
    "planted float32": (0.95, 1.0),
    "planted bfloat16": (0.95, 1.0),
    "held-out float32": (0.90, 0.97),
    "held-out bfloat16": (0.85, 0.95),
    "kinds float32": (0.85, 0.95),
}
TINY = [
    "peer host annotated / float32 own",
    "peer host decoder / float32 own",
    "decoder depends-on-the-batch float32",
    "gradients never cleared / float32",
]


def measured_rows(part: str, options: argparse.Namespace) -> list[Document]:
    names, run = PARTS[part]
    chosen = sound.names(["float32 own"]) if part == "sound" and options.tiny else names()
    if options.only:
        alternatives = [words.split("&") for words in options.only]
        chosen = [name for name in chosen if any(all(word in name for word in words) for words in alternatives)]
    store = None
    if options.rows is not None:
        options.rows.mkdir(parents=True, exist_ok=True)
        store = options.rows / f"{part}.jsonl"
    limits = Limits(seconds=options.seconds, jobs=options.jobs)
    return list(run_cases(chosen, run, limits, store, PRELOADED))


def alarms(rows: Sequence[Document]) -> Document:
    """Return the untrue findings of sound models, and the figures of the run."""
    known = tomllib.loads(TRUE_FINDINGS.read_text(encoding="utf-8"))["finding"]
    examined = [row for row in rows if "found" in row]

    def is_true(row: Document, name: str) -> bool:
        return any(fnmatch(row["model"], finding["model"]) and name == finding["name"] for finding in known)

    findings = [(row, *found) for row in examined for found in row["found"] if found[1] != "note"]
    cases = [case.split(" ") for case in {row["case"] for row in examined}]
    crashes = [row for row in rows if "crash" in row and not is_true(row, "refused")]
    return {
        "examinations": len(examined),
        "checks": sum(row["asked"] for row in examined),
        "models": Counter(words[1] if words[0] == "peer" else "transformers" for words in cases),
        "untrue": [
            {"case": row["case"], "name": name, "severity": severity, "evidence": evidence}
            for row, name, severity, evidence in findings
            if not is_true(row, name)
        ],
        "true": Counter(f"{row['model']}: {name}" for row, name, *_ in findings if is_true(row, name)),
        "crashes and failures": failures([*crashes, *(row for row in rows if "failure" in row)]),
        "not built": {row["model"]: row["left out"] for row in rows if "left out" in row},
        "models that cannot compute in their precision": sum("not called" in row for row in rows),
        "seconds": time_summary(examined),
    }


def shares(part: str, rows: Sequence[Document]) -> Document:
    """Return by precision the shares of defects that were named and noticed, and what was found in sound twins."""
    figures: Document = {}
    for kind, targets in TARGETS.items():
        own = [row for row in rows if kind == f"{part} {row['case'].rpartition(' ')[2]}" and "found" in row]
        defects = [row for row in own if row["defect"]]
        if defects:
            figures[kind] = {"defects": len(defects), "sound": len(own) - len(defects)}
        for name, target in zip(("named", "noticed"), targets, strict=True):
            if defects:
                share = sum(row[name] for row in defects) / len(defects)
                figures[kind] |= {name: share, f"{name} at least": target}
    done = [row for row in rows if "found" in row]
    missed = [row for row in done if row["defect"] and not row["named"]]
    return {
        "shares": figures,
        "missed": {row["case"]: [name for name, _, _ in row["found"]] for row in missed},
        "beside": {row["case"]: row["beside"] for row in done if row["beside"]},
        "failures": failures(row for row in rows if "found" not in row),
        "seconds": time_summary(done),
    }


def failures(rows: Iterable[Document]) -> dict[str, str]:
    return {row["case"]: row.get("failure") or row["crash"] for row in rows}


def time_summary(rows: Sequence[Document]) -> dict[str, float]:
    seconds = [row["seconds"] for row in rows]
    return {"median": statistics.median(seconds), "longest": max(seconds)} if seconds else {}


def measure(options: argparse.Namespace) -> Document:
    warnings.simplefilter("ignore")
    document = {}
    for part in options.part:
        rows = measured_rows(part, options)
        document[part] = alarms(rows) if part == "sound" else shares(part, rows)
    return document


OPTIONS = {
    "--part": option(list(PARTS), "parts to run", choices=list(PARTS)),
    "--only": option(str, "only cases whose names hold a word, or all words joined by &", nargs="+", tiny=TINY),
    "--rows": option(Path, "folder of the results so far, one JSON line a case"),
    "--jobs": option(2, "processes at a time"),
    "--seconds": option(300.0, "seconds a case may take"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="s", packages=["transformers"])
