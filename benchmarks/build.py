"""Measure what back-translation and distillation gain, and check that no kill changes the result of a plan.

    python benchmarks/build.py back-translation --root data/tatoeba-de-en [--seeds 1 2 3] [--steps 2500] [--json]
    python benchmarks/build.py student --root data/multi30k [--seeds 1 2 3] [--steps 3500] [--json]
    python benchmarks/build.py ko-en --root data/tatoeba-ko-en --english data/tatoeba-de-en [--share 0.5] [--json]
    python benchmarks/build.py tatoeba-de-en-student --root data/tatoeba-de-en [--share 0.5] [--pairs N] [--json]
    python benchmarks/build.py kills [--kills 100] [--json]

back-translation: German-English from 20,000 pairs, and from the same pairs with 100,000 lines of English that a
model of the other direction translates, tagged: by beam search, and by sampling. All arms have the same number of
updates.
student: English-German, a teacher of 6+6 layers; a student of 6+1 layers on the original text, on the teacher's
translations, on these with initial weights from the teacher (its encoder and its first decoder layer), and the same
with twice the updates on the texts of both methods of distillation; greedy speed of teacher and student, in turn.
Scores are sacreBLEU of texts that no arm has seen, means over seeds.
ko-en, tatoeba-de-en-student: every model of this plan, and its teacher or student trained on the pairs alone, or
from scratch, with the same number of updates. --share shortens all trainings.
kills: builds a small plan repeatedly, kills each process at a random moment, and compares all weights with those of
an undisturbed build; counts what was made twice.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import random
import shutil
import statistics
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import machine
from tiny import write_pairs

SMALL = {
    "tokenizer": {"vocab_size": 400},
    "model": {"d_model": 16, "d_ff": 24, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1},
    "training": {"save_every": 2, "batch_tokens": 300, "valid_sentences": 0},
}
REPEATS = 3  # of each measurement of speed
SINGLE_SENTENCES = 200  # number of sentences that are translated one a call


def plan_toml(plan: dict[str, Any]) -> str:
    """Return a plan in TOML."""
    from manyheads.config.load.toml import to_toml

    lines = [f"{key} = {to_toml(value)}" for key, value in plan.items() if key not in ("text", "steps")]
    for group in ("text", "steps"):
        for name, table in plan[group].items():
            lines += ["", f"[{group}.{name}]", *(f"{key} = {to_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def run_plan(plan: dict[str, Any], out: Path) -> Any:
    """Build a plan quietly; return its builder."""
    from manyheads.improve.build.plan import load_plan
    from manyheads.improve.build.runner import Builder
    from manyheads.improve.build.steps import BuildContext
    from manyheads.reports import NO_LISTENER

    path = out / "plan.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plan_toml(plan), encoding="utf-8")
    builder = Builder(BuildContext(load_plan(path, out / "products"), NO_LISTENER))
    builder.build()
    return builder


def results(builder: Any) -> dict[str, float]:
    """Return the BLEU of each step that evaluates."""
    from manyheads.improve.build.record import Record

    records = {name: Record.read(builder.record_path(name)) for name in builder.plan.steps}
    return {name: record.result["bleu"] for name, record in records.items() if record.kind == "evaluate"}


def train_step(arguments: Any, seed: int, **settings: Any) -> dict[str, Any]:
    """Return a step that trains with the recipe, for the number of updates of all arms."""
    base = {"steps": arguments.steps, "epochs": "none", "max_minutes": "none", "seed": seed}
    step: dict[str, Any] = {"kind": "train", "valid": "valid", "test": "test", **settings}
    if arguments.tiny:
        for section, values in SMALL.items():
            step[section] = {**values, **step.get(section, {})}
    else:
        step["config"] = arguments.recipe
        if arguments.width:
            step["model"] = {**step.get("model", {}), "d_model": arguments.width, "d_ff": 4 * arguments.width}
    step["training"] = {**step.get("training", {}), **base}
    return step


def lines_of(root: Path, name: str) -> list[str]:
    """Return the lines of a file, which may be compressed."""
    from bitext.file_names import existing
    from bitext.lines import read_lines

    path = existing(root / name)
    if path is None:
        sys.exit(f"error: {root / name} is missing. Fetch it: manyheads data fetch NAME")
    return list(read_lines(path))


def back_translation(arguments: Any, seed: int, out: Path) -> dict[str, float]:
    """Compare the pairs alone with the pairs and tagged back-translations."""
    out.mkdir(parents=True, exist_ok=True)
    pairs, english = (10, 20) if arguments.tiny else (arguments.pairs or 20_000, arguments.lines)
    valid_file = "valid" if arguments.tiny else "dev"
    text = {}
    for language in ("de", "en"):
        lines = {
            "parallel": lines_of(arguments.root, f"train.{language}"),
            "valid": lines_of(arguments.root, f"{valid_file}.{language}"),
        }
        half = len(lines["valid"]) // 2
        lines |= {"test": lines["valid"][half:], "valid": lines["valid"][:half]}
        if language == "en":
            lines["english"] = lines["parallel"][-english:]
        lines["parallel"] = lines["parallel"][: len(lines["parallel"]) - english][:pairs]
        for name, rows in lines.items():
            (out / f"{name}.{language}").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
            text.setdefault(name, {})[language] = str((out / f"{name}.{language}").absolute())
    symbols = {"symbols": ["<bt>"]}
    steps: dict[str, Any] = {
        "backward": train_step(arguments, seed, text="parallel", data={"source": "en", "target": "de"}),
        "raw": train_step(arguments, seed, text="parallel"),
    }
    methods: dict[str, dict[str, Any]] = {"beam": {"beam": 5}, "sampling": {"sampling": 1.0, "seed": seed}}
    for method, settings in methods.items():
        steps[f"back-{method}"] = {"kind": "translate", "model": "backward", "text": "english", **settings}
        steps[f"tagged-{method}"] = {"kind": "mix", "text": [{"text": f"back-{method}", "tag": "<bt>"}]}
        weights = {"stages": [{"weights": [2, 1]}]}
        steps[f"tagged, {method}"] = train_step(
            arguments, seed, text=["parallel", f"tagged-{method}"], tokenizer=symbols, training=weights
        )
    steps = {name.replace(", ", "-by-"): step for name, step in steps.items()}
    for name in ("raw", "tagged-by-beam", "tagged-by-sampling"):
        steps[f"{name}-scores"] = {"kind": "evaluate", "model": name, "text": "test"}
    scores = results(run_plan({"source": "de", "target": "en", "text": text, "steps": steps}, out))
    return {name.removesuffix("-scores"): bleu for name, bleu in scores.items()}


def student(arguments: Any, seed: int, out: Path) -> dict[str, float]:
    """Compare a student on the original text, one on its teacher's translations, and the teacher."""
    names = {"parallel": "train", "valid": "val", "test": "test" if arguments.tiny else "test_2016_flickr"}
    text = {
        name: {language: str((arguments.root / f"{file}.{language}").absolute()) for language in ("en", "de")}
        for name, file in names.items()
    }
    model_shape = {"num_encoder_layers": 6, "num_decoder_layers": 1}
    steps = {
        "teacher": train_step(arguments, seed, text="parallel", model={**model_shape, "num_decoder_layers": 6}),
        "distilled": {"kind": "distil", "model": "teacher", "text": "parallel", "beam": 5},
        "raw": train_step(arguments, seed, text="parallel", model=model_shape),
        "student": train_step(arguments, seed, text="distilled", model=model_shape),
        "with-layers": {
            **train_step(arguments, seed, text="distilled", model={"init_decoder_layers": 1}),
            "kind": "fine-tune",
            "start": "teacher",
        },
        "interpolated": {
            "kind": "distil",
            "model": "teacher",
            "text": "parallel",
            "beam": 5,
            "method": "interpolation",
        },
    }
    both_texts = train_step(arguments, seed, text=["distilled", "interpolated"], model={"init_decoder_layers": 1})
    both_texts["training"]["steps"] *= 2  # the same number for each text
    steps["with-both-texts"] = {**both_texts, "kind": "fine-tune", "start": "teacher"}
    greedy = ("teacher", "raw", "student", "with-layers", "with-both-texts")
    for name, beam in (("teacher", 5), *((name, 1) for name in greedy)):
        steps[f"{name}-beam-{beam}"] = {"kind": "evaluate", "model": name, "text": "test", "beam": beam}
    builder = run_plan({"source": "en", "target": "de", "text": text, "steps": steps}, out)
    sources = lines_of(arguments.root, f"{names['test']}.en")
    return results(builder) | speeds(builder, sources)


def speeds(builder: Any, sources: list[str]) -> dict[str, float]:
    """Return the greedy sentences a second of teacher and student, the median of measurements in turn.

    All in one call, and one sentence a call, in float32 and int8.
    """
    from manyheads.inference.translation.translator import Translator

    results = {}
    for precision, single in itertools.product(("fp32", "int8"), (False, True)):
        models = {
            name: Translator.load(builder.plan.model(name), precision=precision) for name in ("teacher", "student")
        }
        calls = [[line] for line in sources[:SINGLE_SENTENCES]] if single else [sources]
        seconds_of_models: dict[str, list[float]] = {name: [] for name in models}
        for _ in range(1 + REPEATS):
            for name, model in models.items():
                start = time.perf_counter()
                for call in calls:
                    model.translate(call, beam_size=1)
                seconds_of_models[name].append(time.perf_counter() - start)
        medians = {name: statistics.median(times[1:]) for name, times in seconds_of_models.items()}
        mode = f"{precision}, {'one a call' if single else 'all in one call'}"
        for name, times in medians.items():
            results[f"{name} sentences/s, {mode}"] = round(sum(map(len, calls)) / times, 1)
        results[f"times as fast, {mode}"] = round(medians["teacher"] / medians["student"], 2)
    return results


# --- plans of the recipes ---

FROM_SCRATCH: dict[str, Any] = {"kind": "train", "tokenizer": {"split_digits": True}}
SIX_PLUS_TWO = {"model": {"num_encoder_layers": 6, "num_decoder_layers": 2}}
BASELINES: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {  # training -> the step it differs from, and how
    "ko-en": {
        "teacher-alone": ("teacher", {"text": "cleaned"}),
        "student-alone": ("student", FROM_SCRATCH | {"text": "cleaned", "model": {"num_decoder_layers": 1}}),
    },
    "tatoeba-de-en-student": {
        "student-alone": ("student", FROM_SCRATCH | SIX_PLUS_TWO | {"text": "parallel"}),
        "student-from-scratch": ("student", FROM_SCRATCH | SIX_PLUS_TWO),
    },
}


def recipe_plan(arguments: Any, seed: int, out: Path) -> dict[str, float]:
    """Build a plan of the recipes; score its models and those trained on the pairs alone, with beam 1 and 5."""
    from manyheads.improve.build.plan import resolve_plan

    plan = tomllib.loads(resolve_plan(arguments.measure).read_text(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    for language in (plan["source"], plan["target"]):
        dev_lines = lines_of(arguments.root, f"dev.{language}")
        text = {
            "parallel": lines_of(arguments.root, f"train.{language}")[: arguments.pairs],
            "valid": dev_lines[: len(dev_lines) // 2],
            "test": dev_lines[len(dev_lines) // 2 :],
        }
        if language in plan["text"].get("english", {}):
            text["english"] = lines_of(arguments.english, f"train.{language}")
        for name, lines in text.items():
            (out / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            plan["text"][name][language] = str((out / f"{name}.{language}").absolute())
    steps = {name: step for name, step in plan["steps"].items() if step["kind"] not in ("evaluate", "export")}
    for name, (original, changed) in BASELINES[arguments.measure].items():
        training = {key: value for key, value in steps[original]["training"].items() if key != "stages"}
        step = {key: value for key, value in steps[original].items() if key != "start"}
        steps[name] = {**step, "training": training, **changed}
    for name in [name for name in steps if "training" in steps[name]]:
        training = steps[name]["training"] | {"seed": seed}
        stages = [with_fewer_updates(stage, arguments.share) for stage in training.pop("stages", ())]
        steps[name]["training"] = with_fewer_updates(training, arguments.share) | (
            {"stages": stages} if stages else {}
        )
        for beam in (1, 5) if name != "backward" else ():
            steps[f"{name}-beam-{beam}"] = {"kind": "evaluate", "model": name, "text": "test", "beam": beam}
    return results(run_plan(plan | {"root": str(out.absolute()), "steps": steps}, out))


def with_fewer_updates(training: dict[str, Any], share: float) -> dict[str, Any]:
    """Return settings of a training with this share of the updates."""
    return {key: max(1, round(value * share)) if key == "steps" else value for key, value in training.items()}


# --- kills ---


def tiny_plan(root: Path) -> dict[str, Any]:
    """Return a plan of all kinds of steps but export, on made-up text."""
    parts = {"parallel": "train", "valid": "valid", "test": "test"}
    text = {
        name: {language: str((root / f"{file}.{language}").absolute()) for language in ("de", "en")}
        for name, file in parts.items()
    }
    text["english"] = {"en": text["parallel"]["en"]}
    arguments = type("Arguments", (), {"tiny": True, "steps": 12})
    steps = {
        "downloads": {"kind": "convert", "files": [str((root / "pairs.tsv").absolute())]},
        "cleaned": {"kind": "clean", "text": "downloads", "clean": {"off": ["language"]}},
        "backward": train_step(arguments, 1, text="cleaned", data={"source": "en", "target": "de"}),
        "back": {"kind": "translate", "model": "backward", "text": "english", "beam": 1, "lines": 100},
        "tagged": {"kind": "mix", "text": [{"text": "back", "tag": "<bt>"}]},
        "teacher": train_step(
            arguments, 1, text=["cleaned", "tagged"], tokenizer={"vocab_size": 400, "symbols": ["<bt>"]},
            training={"stages": [{"steps": 7, "weights": [1, 1]}, {"weights": [1, 0]}]},
        ),
        "distilled": {"kind": "distil", "model": "teacher", "text": "cleaned", "beam": 2,
                      "method": "interpolation"},
        "student": train_step(arguments, 1, text="distilled"),
        "tuned": {"kind": "fine-tune", "start": "student", "text": "parallel", "valid": "valid",
                  "training": {**SMALL["training"], "steps": 4}},
        "scores": {"kind": "evaluate", "model": "tuned", "text": "test", "beam": 1},
    }  # fmt: skip
    return {"source": "de", "target": "en", "text": text, "steps": steps}


def build_here(root: Path, out: Path) -> None:
    """Build the plan in this process, with one thread."""
    import torch

    from bitext import convert
    from manyheads.improve.build import text

    torch.set_num_threads(1)
    text.SHARD_LINES = convert._SHARD_PAIRS = 20  # several shards, so that kills fall between them
    run_plan(tiny_plan(root), out)


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


def kills(arguments: Any, seed: int, out: Path) -> dict[str, float]:
    """Kill builds at random moments; return the number of kills, of builds that ended, and of repeated parts."""
    processes, rng = multiprocessing.get_context("forkserver"), random.Random(seed)
    processes.set_forkserver_preload(["manyheads.improve.build.runner"])
    shutil.rmtree(out, ignore_errors=True)  # a finished build would end before it is killed
    out.mkdir(parents=True)
    root = write_pairs(out)
    sides = [["de", *lines_of(root, "train.de")], ["en", *lines_of(root, "train.en")]]
    (root / "pairs.tsv").write_text(
        "".join(f"{de}\t{en}\n" for de, en in zip(*sides, strict=True)), encoding="utf-8"
    )

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


MEASUREMENTS = {"back-translation": back_translation, "student": student, "kills": kills}
PLANS = dict.fromkeys(BASELINES, recipe_plan)
RECIPES = {"back-translation": "tatoeba-de-en", "student": "multi30k-en-de"}


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("measure", nargs="?", choices=list(MEASUREMENTS | PLANS))
    parser.add_argument("--root", type=Path, help="folder of the text")
    parser.add_argument("--recipe", help="recipe that all arms train by")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=3_000, help="updates of each training (default 3000)")
    parser.add_argument("--width", type=int, help="model.d_model of all models (default: that of the recipe)")
    parser.add_argument("--pairs", type=int, help="pairs (default 20000 for back-translation, all for a plan)")
    parser.add_argument(
        "--lines", type=int, default=100_000, help="back-translation: lines of English (default 100000)"
    )
    parser.add_argument("--english", type=Path, help="ko-en: folder of the English text")
    parser.add_argument("--share", type=float, default=1.0, help="plans: share of the updates (default 1)")
    parser.add_argument("--kills", type=int, default=100, help="kills (default 100)")
    parser.add_argument("--out", type=Path, default=Path("runs/build"))
    arguments = machine.parse(parser, tiny={"seeds": [1], "steps": 4, "kills": 2, "measure": None}, required=[])
    chosen = [arguments.measure] if arguments.measure else list(MEASUREMENTS)
    rows: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        if arguments.tiny:
            arguments.out = Path(folder)
        recipe_and_root = arguments.recipe, arguments.root
        for measurement in chosen:
            recipe, root = recipe_and_root
            arguments.recipe = recipe or RECIPES.get(measurement)
            arguments.root = root
            if arguments.tiny:
                arguments.root = Path(folder) / f"text-{measurement}"
                arguments.root.mkdir()
                write_pairs(arguments.root, valid="val" if measurement == "student" else "valid")
            elif measurement != "kills" and root is None:
                parser.error(f"{measurement} needs --root, the folder of its text")
            seeds = arguments.seeds[:1] if measurement == "kills" else arguments.seeds
            rows[measurement] = []
            for seed in seeds:
                rows[measurement].append(
                    (MEASUREMENTS | PLANS)[measurement](arguments, seed, arguments.out / measurement / str(seed))
                )
                print(f"{measurement}, seed {seed}: {rows[measurement][-1]}", file=sys.stderr, flush=True)
    about = machine.about()
    if arguments.json:
        print(json.dumps({"unit": "BLEU, sentences/s", **about, "rows": rows}))
        return
    print(f"{machine.describe(about)}\n")
    for measurement, seed_rows in rows.items():
        print(f"| {measurement} | mean of {len(seed_rows)} |\n| --- | ---: |")
        for name in seed_rows[0]:
            values = [row[name] for row in seed_rows]
            spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
            print(f"| {name} | {statistics.mean(values):.2f}{spread} |")
        print()


if __name__ == "__main__":
    main()
