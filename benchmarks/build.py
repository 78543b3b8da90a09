"""Measure what back-translation and distillation gain, and check that no kill changes the result of a plan.

    python benchmarks/build.py back-translation --root data/tatoeba-de-en [--seeds 1 2 3] [--json]
    python benchmarks/build.py student --root data/multi30k [--seeds 1 2 3] [--json]
    python benchmarks/build.py ko-en --root data/tatoeba-ko-en --english data/tatoeba-de-en [--share 0.5] [--json]
    python benchmarks/build.py tatoeba-de-en-student --root data/tatoeba-de-en [--share 0.5] [--pairs N] [--json]
    python benchmarks/build.py kills [--kills 100] [--json]

back-translation and student are plans of benchmarks/plans, which say what they compare; ko-en and
tatoeba-de-en-student are plans of the recipes, with further models that have the same number of updates. --share
shortens all trainings. Every model is scored greedily and with beam 5 by sacreBLEU of texts
that no model has seen: means over seeds. Models are kept in --out: `benchmarks/decoding_speed.py` measures the
speed of each.
kills: builds a small plan repeatedly, kills each process at a random moment, and compares all weights with those of
an undisturbed build; counts what was made twice.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import shutil
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from bitext.file_names import existing
from bitext.lines import read_lines
from harness import FOLDER, Document, main, option, over_seeds
from material import named, write, write_pairs

SMALL = {
    "tokenizer": {"vocab_size": 400},
    "model": {"d_model": 16, "d_ff": 24, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1},
    "training": {"save_every": 2, "batch_tokens": 300, "valid_sentences": 0},
}
PLANS = sorted(path.stem for path in (FOLDER / "plans").glob("*.toml"))
TEST = "test_2016_flickr"


def plan_toml(plan: Document) -> str:
    from manyheads.config.load.toml import to_toml

    lines = [f"{key} = {to_toml(value)}" for key, value in plan.items() if key not in ("text", "steps")]
    for group in ("text", "steps"):
        for name, table in plan[group].items():
            lines += ["", f"[{group}.{name}]", *(f"{key} = {to_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def run_plan(plan: Document, out: Path) -> dict[str, float]:
    """Build a plan quietly; return the BLEU of each step that evaluates."""
    from manyheads.improve.build.inputs import BuildContext
    from manyheads.improve.build.plan import load_plan
    from manyheads.improve.build.record import Record
    from manyheads.improve.build.runner import Builder
    from manyheads.reports import NO_LISTENER

    path = write(out / "plan.toml", [plan_toml(plan)])
    builder = Builder(BuildContext(load_plan(path, out / "products"), NO_LISTENER))
    builder.build()
    records = {name: Record.read(builder.record_path(name)) for name in builder.plan.steps}
    return {name: record.result["bleu"] for name, record in records.items() if record.kind == "evaluate"}


def read_plan(name: str) -> Document:
    """Return a plan of this folder, or one of the recipes with the trainings that this folder adds to it."""
    from manyheads.improve.build.plan import resolve_plan

    plan = tomllib.loads((FOLDER / "plans" / f"{name}.toml").read_text(encoding="utf-8"))
    if "steps" not in plan:
        plan |= tomllib.loads(resolve_plan(name).read_text(encoding="utf-8"))
    steps = plan["steps"]
    for step, changes in plan.pop("like", {}).items():
        original = dict(steps[changes.pop("step")])
        original.pop("start", None)
        training = {key: value for key, value in original["training"].items() if key != "stages"}
        steps[step] = {**original, "training": training, **changes}
    return plan


def lines_of(root: Path, name: str) -> list[str]:
    """Return the lines of a file, which may be compressed."""
    path = existing(root / name)
    if path is None:
        sys.exit(f"error: {root / name} is missing. Fetch it: manyheads data fetch NAME")
    return list(read_lines(path))


def write_texts(plan: Document, arguments: argparse.Namespace, out: Path) -> None:
    """Write the texts that a plan reads: validation and test text are halves of dev where the folder has it."""
    root = arguments.root
    pairs, english = plan.pop("pairs", None), plan.pop("lines", 0)
    pairs = arguments.pairs or pairs
    for language in (plan["source"], plan["target"]):
        lines = lines_of(root, f"train.{language}")
        text = {"parallel": lines[: len(lines) - english][:pairs]}
        if existing(root / f"dev.{language}"):
            dev = lines_of(root, f"dev.{language}")
            text |= {"valid": dev[: len(dev) // 2], "test": dev[len(dev) // 2 :]}
        else:
            text |= {"valid": lines_of(root, f"val.{language}"), "test": lines_of(root, f"{TEST}.{language}")}
        if language == "en" and "english" in plan["text"]:
            text["english"] = lines[-english:] if english else lines_of(arguments.english, "train.en")
        for name, own in text.items():
            plan["text"][name][language] = f"{name}.{language}"
            write(out / f"{name}.{language}", own)


def measure_plan(arguments: argparse.Namespace, seed: int, out: Path) -> dict[str, float]:
    plan = read_plan(arguments.measure)
    if arguments.tiny and "lines" in plan:
        plan |= {"pairs": 10, "lines": 20}
    write_texts(plan, arguments, out)
    steps = {name: step for name, step in plan["steps"].items() if step["kind"] not in ("evaluate", "export")}
    for name, step in list(steps.items()):
        if "sampling" in step:
            step["seed"] = seed
        if "training" not in step:
            continue
        training = step["training"] | {"seed": seed}
        stages = [with_fewer_updates(stage, arguments.share) for stage in training.pop("stages", ())]
        step["training"] = with_fewer_updates(training, arguments.share) | ({"stages": stages} if stages else {})
        if arguments.tiny:
            make_small(step)
        for beam in (1, 5) if name != "backward" else ():
            steps[f"{name}-beam-{beam}"] = {"kind": "evaluate", "model": name, "text": "test", "beam": beam}
    return run_plan(plan | {"root": str(out.absolute()), "steps": steps}, out)


def with_fewer_updates(training: Document, share: float) -> Document:
    return {key: max(1, round(value * share)) if key == "steps" else value for key, value in training.items()}


def make_small(step: Document) -> None:
    """Replace the recipe of a training by a small model."""
    step.pop("config", None)
    for section, values in SMALL.items():
        if step["kind"] == "train" or section == "training":
            step[section] = {**values, **step.get(section, {})}


# --- kills ---


def build_here(root: Path, out: Path) -> None:
    """Build the plan of all kinds of steps in this process, with one thread."""
    import torch

    from bitext import convert
    from manyheads.improve.build.steps import translate as text

    torch.set_num_threads(1)
    text.SHARD_LINES = convert._SHARD_PAIRS = 20  # several shards, so that kills fall between them
    plan = read_plan("kills")
    for step in plan["steps"].values():
        if "training" in step:
            make_small(step)
    plan["steps"]["downloads"]["files"] = [str((root / "pairs.tsv").absolute())]
    run_plan({"root": str(root.absolute()), **plan}, out)


def product_hashes(out: Path) -> dict[str, str]:
    """Return the hash of each product file that a kill must not change, by its path."""
    from manyheads.checkpoint.files import sha256

    files = [*out.glob("products/*/model.safetensors"), *out.glob("products/*/text.*")]
    return {str(path.relative_to(out)): sha256(path) for path in sorted(files)}


def finish_times(out: Path) -> dict[str, float]:
    """Return the time at which each finished step ended and each finished shard of an open step was written."""
    times = {}
    for path in out.glob("products/records/*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["state"] == "done":
            times[path.stem] = record["finished"]
    shards = out.glob("products/.work/**/*.shard")
    return times | {str(path.relative_to(out)): float(path.stat().st_mtime_ns) for path in shards}


def kills(arguments: argparse.Namespace, seed: int, out: Path) -> dict[str, float]:
    """Kill builds at random moments; return the number of kills, of builds that ended, and of repeated parts."""
    processes, rng = multiprocessing.get_context("forkserver"), random.Random(seed)
    processes.set_forkserver_preload(["manyheads.improve.build.runner"])
    shutil.rmtree(out, ignore_errors=True)  # a finished build would end before it is killed
    out.mkdir(parents=True)
    root = write_pairs(out)
    sides = [["de", *lines_of(root, "train.de")], ["en", *lines_of(root, "train.en")]]
    write(root / "pairs.tsv", map("\t".join, zip(*sides, strict=True)))

    def start(folder: Path) -> Any:
        process = processes.Process(target=build_here, args=(root, folder))
        process.start()
        return process

    for name in ("warm", "whole"):
        begin = time.monotonic()
        process = start(out / name)
        process.join()
        assert process.exitcode == 0, f"the build ended with {process.exitcode}"
    full_seconds, expected = time.monotonic() - begin, product_hashes(out / "whole")
    kill_count = build_count = repeated = resumed = 0
    while kill_count < arguments.kills or not build_count:
        folder = out / f"killed-{build_count}"
        times_before, process = finish_times(folder), start(folder)
        process.join(rng.uniform(0, full_seconds) if kill_count < arguments.kills else None)
        if process.exitcode is None:
            process.kill()
            process.join()
            kill_count += 1
        times_after = finish_times(folder)
        repeated += sum(
            name in times_after and times_after[name] != time_before for name, time_before in times_before.items()
        )
        resumed += bool(times_before)
        if process.exitcode == 0:
            assert product_hashes(folder) == expected, folder
            build_count += 1
    return {
        "kills": kill_count,
        "builds": build_count,
        "resumed": resumed,
        "repeated": repeated,
        "files compared": len(expected),
    }


def measure(arguments: argparse.Namespace) -> Document:
    rows: dict[str, list[dict[str, float]]] = {}
    for name in ["back-translation", "student", "kills"] if arguments.measure is None else [arguments.measure]:
        arguments.measure, rows[name] = name, []
        if name != "kills" and arguments.root is None:
            sys.exit(f"error: {name} needs --root, the folder of its text")
        for seed in arguments.seeds[:1] if name == "kills" else arguments.seeds:
            function = kills if name == "kills" else measure_plan
            rows[name].append(function(arguments, seed, arguments.out / name / str(seed)))
            print(f"{name}, seed {seed}: {rows[name][-1]}")
    return {"rows": rows, "seeds": {name: over_seeds(own) for name, own in rows.items()}}


OPTIONS: dict[str, Any] = {
    "measure": option(str, "what to measure", choices=PLANS, required=True),
    "--root": option(Path, "folder of the text", tiny=lambda folder: write_pairs(folder, valid="val", test=TEST)),
    "--seeds": option([1, 2, 3], "seeds", tiny=[1]),
    "--pairs": option(int, "pairs (default: as the plan says, or all)"),
    "--english": option(Path, "ko-en: folder of the English text"),
    "--share": option(1.0, "share of the updates", tiny=0.001),
    "--kills": option(100, "kills", tiny=2),
    "--out": option(Path("runs/build"), "folder of the models", tiny=named("out")),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="BLEU")
