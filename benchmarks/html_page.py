"""The exported page of a translator in headless Chromium: equal to Python, speed, memory, damaged files, idle time.

    python benchmarks/html_page.py RUN [--parts equal speed ...] [--precisions fp32 int8] [--lines 1000]
        [--onnxruntime-web DIR] [--models 10000] [--files 500] [--seed 1] [--json]

RUN is a translator whose test text is on this machine. What is measured is the file that `manyheads export RUN --to
html` writes, opened from file://. Times are in ms.

    equal       translations of the test text by the page and by `Translator` of the same precision, greedy and with
                beam 5, and BLEU of both; every difference is listed with both scores, in nats
    attention   largest difference of the attention weights of the page and of `inspect`, on 50 lines, with the same
                outputs; Python computes in fp32, with the weights of the run and with the rounded ones
    speed       size of the file, time from navigation until the worker is ready, and time of a sentence of 12
                words: the first, and the median of the others; also the processor time of the renderer, which other
                programs change less. Beside onnxruntime-web (one thread, SIMD) with the graphs of `--to onnx` and a
                greedy loop from ids to ids; `npm install --prefix DIR onnxruntime-web`
    memory      WebAssembly memory, JavaScript heaps after a collection, and resident memory of the renderer less
                that of an empty page, in MiB; 1,000 translations in a row, ten times the same 100: growth in KiB
                each over the last 800
    damage      copies whose model was changed, each in a worker of its own, and copies of the file with changed
                bytes: a translation or a message must come within 10 seconds (a file that ends before the first
                text of the page, in its first 1,000 bytes, stays silent)
    idle        processor time of the renderer over 5 seconds in which nobody asks for anything, in percent
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Error
from safetensors.torch import load_file, save_file

import machine
import tiny
from exported_page.chromium import Chromium, Heaps, open_chromium, script
from exported_page.mutations import ModelMutations, model_texts, mutated_file
from exported_page.onnx_page import OnnxPage, Timed
from manyheads.checkpoint import RunDirectory
from manyheads.decoding.linear import round_weight
from manyheads.evaluation import score
from manyheads.inspection.codec import array_from_json
from manyheads.runs.evaluate import texts
from manyheads.runs.html_export import html_document, pack_run
from manyheads.runs.inspect import inspect_loaded, load_for_inspection
from manyheads.tasks.inspecting import InspectOptions
from manyheads.tasks.translation import Translation, Translator

WORDS = 12  # of the sentence that is timed
BEAMS = (1, 5)
TIE = 1e-4  # nats between the scores of two translations
LIMIT = 10_000  # milliseconds until a damaged page must have answered
BATCH = 50  # damaged models before the page that opens them is opened anew
ONNX = "onnxruntime-web fp32"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Setting:
    """What all parts measure.

    Attributes:
        run: run directory.
        pages: exported page in each precision.
        lines: sources of the test text.
        references: their references.
        rounded: copy of the run with the weights of an int8 page.
        chromium: browser.
        options: command line.
    """

    run: Path
    pages: dict[str, Path]
    lines: list[str]
    references: list[str]
    rounded: Path
    chromium: Chromium
    options: Namespace

    @property
    def sentence(self) -> str:
        """Return the first line of 12 words, or the one that comes nearest."""
        return min(self.lines, key=lambda line: abs(len(line.split()) - WORDS))


def equal(setting: Setting) -> Rows:
    """Compare translations of the page and of Python."""
    rows = []
    for precision, path in setting.pages.items():
        page, _ = setting.chromium.open_export(path)
        translator = Translator.load(setting.run, device="cpu", precision=precision)
        for beam in BEAMS:
            found = page.evaluate(script("translate.js"), [setting.lines, beam])
            row = compare(translator.translate(setting.lines, beam_size=beam), found, setting)
            rows.append({"page": precision, "beam": beam, **row})
    return rows


def compare(expected: list[Translation], found: list[dict[str, Any]], setting: Setting) -> dict[str, Any]:
    """Compare translations of Python with those of the page."""
    pairs = list(zip(expected, found, strict=True))
    differences = [
        {
            "source": ours.source,
            "python": [ours.score, ours.translation],
            "page": [one["score"], one["translation"]],
        }
        for ours, one in pairs
        if ours.translation != one["translation"]
    ]
    outputs = {"python": [ours.translation for ours, _ in pairs], "page": [one["translation"] for _, one in pairs]}
    bleu = {name: score(lines, setting.references) for name, lines in outputs.items()}
    return {
        "lines": len(pairs),
        "equal": len(pairs) - len(differences),
        "ties": sum(abs(one["python"][0] - one["page"][0]) < TIE for one in differences),
        "largest difference of scores": max(abs(ours.score - one["score"]) for ours, one in pairs),
        **{f"BLEU of {name}": round(one.bleu, 2) for name, one in bleu.items()},
        "signature": bleu["page"].signature["bleu"],
        "differences": differences,
    }


def round_run(run: Path, folder: Path) -> Path:
    """Copy a run with its matrices rounded as int8 holds them, token embeddings included; return the copy."""
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("checkpoints", "cache"))
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in tensors.items():
        if tensor.ndim == 2 and ".positions." not in name and ".types." not in name:
            tensors[name] = round_weight(tensor, "int8")
    save_file(tensors, folder / "model.safetensors")
    return folder


def attention(setting: Setting) -> Rows:
    """Compare the attention weights of the page with those of Python in fp32."""
    lines = setting.lines[:50]
    targets = [one.translation for one in Translator.load(setting.run, device="cpu").translate(lines, beam_size=1)]
    rows = []
    for precision, path in setting.pages.items():
        page, _ = setting.chromium.open_export(path)
        bodies = [{"q": line, "target": to, "occlusion": False} for line, to in zip(lines, targets, strict=True)]
        inspected = [page.evaluate("(body) => computeInWorker('api/inspect', body)", body) for body in bodies]
        references = {"fp32 of Python": setting.run}
        if precision == "int8":
            references["fp32 of rounded weights"] = setting.rounded
        for name, run in references.items():
            loaded = load_for_inspection(run, "cpu")
            largest = {"encoder": 0.0, "decoder": 0.0, "cross": 0.0}
            for line, target, found in zip(lines, targets, inspected, strict=True):
                options = InspectOptions(target=target, occlusion=False)
                expected = inspect_loaded(loaded, line, options).packed_dict()
                for ours, theirs in zip(expected["attention"], found["attention"], strict=True):
                    gap = np.abs(array_from_json(ours["weights"]) - array_from_json(theirs["weights"])).max()
                    largest[ours["kind"]] = max(largest[ours["kind"]], round(float(gap), 6))
            row = {"page": precision, "reference": name, "lines": len(lines)}
            rows.append({**row, "largest": max(largest.values()), **largest})
    return rows


@contextmanager
def opened_page(setting: Setting, path: Path, beam: int) -> Iterator[tuple[float, Callable[[int], list[Timed]]]]:
    """Open an exported page; yield when it was ready, and a function that translates a sentence so many times."""
    page, ready = setting.chromium.open_export(path)

    def translate(count: int) -> list[Timed]:
        found = page.evaluate(script("translate.js"), [[setting.sentence] * count, beam])
        return [(one["milliseconds"], one["translation"]) for one in found]

    yield ready, translate


@dataclass
class Contender:
    """A page and its times, in ms, in each round.

    Attributes:
        open: opens the page, see `opened_page`.
        megabytes: size of its files in MB.
        ready: time from navigation until it was ready.
        ready_processor: processor time of the renderer until then.
        first: time of the first translation.
        times: times of the others.
        processor: processor time of each of the others.
    """

    open: Callable[[], AbstractContextManager[tuple[float, Callable[[int], list[Timed]]]]]
    megabytes: float
    ready: list[float] = field(default_factory=list)
    ready_processor: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    translation: str = ""

    def measure(self, chromium: Chromium, repeats: int) -> None:
        """Open the page anew and translate with it."""
        start = chromium.renderers()
        with self.open() as (ready, translate):
            self.ready.append(ready)
            self.ready_processor.append(1000 * chromium.processor_seconds(start))
            ((first, self.translation),) = translate(1)
            self.first.append(first)
            start = chromium.renderers()
            self.times += [milliseconds for milliseconds, _ in translate(repeats)]
            self.processor.append(1000 * chromium.processor_seconds(start) / repeats)

    def row(self) -> dict[str, Any]:
        """Return medians."""
        names = ("ready", "ready_processor", "first", "times", "processor")
        medians = {name: round(statistics.median(getattr(self, name)), 1) for name in names}
        span = [round(min(self.times), 1), round(max(self.times), 1)]
        return {"MB": round(self.megabytes, 2), **medians, "range": span, "translation": self.translation}


def speed(setting: Setting) -> Rows:
    """Time all contenders in turn, in each round."""
    library, chromium = setting.options.onnxruntime_web, setting.chromium
    contenders = {
        (f"page {precision}", beam): Contender(partial(opened_page, setting, path, beam), path.stat().st_size / 1e6)
        for precision, path in setting.pages.items()
        for beam in BEAMS
    }
    with tempfile.TemporaryDirectory() as name:
        if library is not None:
            onnx = OnnxPage(Translator.load(setting.run, device="cpu"), Path(name), library)
            contenders[ONNX, 1] = Contender(partial(onnx.opened, chromium, setting.sentence), onnx.megabytes)
        elif not setting.options.tiny:
            print(f"{ONNX} is left out: name its folder with --onnxruntime-web DIR", file=sys.stderr)
        for _ in range(setting.options.rounds):
            for contender in contenders.values():
                contender.measure(chromium, setting.options.repeats)
    if library is not None and "fp32" in setting.pages:
        assert contenders[ONNX, 1].translation == contenders["page fp32", 1].translation
    return [{"contender": name, "beam": beam, **one.row()} for (name, beam), one in contenders.items()]


def memory(setting: Setting) -> Rows:
    """Measure the memory of a page, and its growth over many translations."""
    rows, part = [], max(1, setting.options.translations // 10)
    for precision, path in setting.pages.items():
        weights = pack_run(setting.run, precision).packed.header["bytes"] / 2**20
        setting.chromium.open("about:blank").wait_for_timeout(1000)
        empty = setting.chromium.resident()
        page, _ = setting.chromium.open_export(path)
        heaps = Heaps(page)
        samples = []
        lines = [setting.lines[number % len(setting.lines)] for number in range(part)]
        for _ in range(0, setting.options.translations, part):
            page.evaluate(script("translate.js"), [lines, 5])
            samples.append({**heaps.sizes(), "resident": setting.chromium.resident() - empty})
        last, late = samples[-1], samples[len(samples) // 5 :]
        slopes = {name: np.polyfit(range(len(late)), [one[name] for one in late], 1)[0] for name in last}
        rows.append(
            {
                "precision": precision,
                "weights": round(weights, 2),
                **{name: round(size, 2) for name, size in last.items()},
                "wasm and heaps / weights": round((sum(last.values()) - last["resident"]) / weights, 2),
                "resident / weights": round(last["resident"] / weights, 2),
                "translations": len(samples) * part,
                "growth": {name: round(1024 * float(slope) / part, 3) for name, slope in slopes.items()},
            }
        )
    return rows


def damage(setting: Setting) -> Rows:
    """Open damaged models and damaged files."""
    precision, path = list(setting.pages.items())[-1]
    page, _ = setting.chromium.open_export(path)
    (right,) = page.evaluate(script("translate.js"), [[setting.sentence], 2])
    rows = []
    for name, outcomes in (("model", damaged_models(setting, path)), ("file", damaged_files(setting, path))):
        kinds: Counter[str] = Counter()
        bad, messages = [], Counter[str]()
        for seed, outcome in outcomes:
            kind, _, words = outcome.partition(" ")
            if kind == "translation":
                kind = "same translation" if words == right["translation"] else "other translation"
            elif kind in ("hang", "crash", "silent"):
                bad.append([seed, outcome])
            else:
                kind = "message"
                messages[outcome[:60]] += 1
            kinds[kind] += 1
        row = {"what": name, "precision": precision, "copies": len(outcomes), "outcomes": dict(kinds), "bad": bad}
        rows.append({**row, "messages": dict(messages.most_common(15))})
    return rows


def damaged_models(setting: Setting, path: Path) -> list[tuple[int, str]]:
    """Translate with models whose texts were changed, each in a worker of its own; return seeds and outcomes."""
    texts_of_page = model_texts(path.read_text(encoding="utf-8"))
    mutations = ModelMutations(texts_of_page)
    outcomes = []
    for number in range(setting.options.models):
        seed = setting.options.seed + number
        if number % BATCH == 0:
            page = setting.chromium.open("about:blank")
            page.add_script_tag(content=script("edited.js"))
            page.evaluate("(texts) => keepOriginal(texts)", texts_of_page)
        try:
            values = [mutations.edits(seed), setting.sentence, LIMIT]
            outcome = page.evaluate("(values) => translateEdited(...values)", values)
        except Error as error:
            outcome = f"crash {error.message}"
        outcomes.append((seed, outcome))
    return outcomes


def damaged_files(setting: Setting, path: Path) -> list[tuple[int, str]]:
    """Open files with changed bytes, each in a page of its own; return seeds and outcomes."""
    data, outcomes = path.read_bytes(), []
    damaged = path.with_name("damaged.html")
    code = script("outcome.js").replace("SENTENCE", json.dumps(setting.sentence))
    for seed in range(setting.options.seed, setting.options.seed + setting.options.files):
        damaged.write_bytes(mutated_file(data, seed))
        page = setting.chromium.open("about:blank")
        page.add_init_script(code)
        try:
            with page.expect_console_message(lambda line: line.text.startswith("outcome "), timeout=LIMIT) as line:
                page.goto(damaged.as_uri(), wait_until="commit")
            outcome = line.value.text.removeprefix("outcome ")
        except Error as error:
            outcome = f"hang {error.message}"
        outcomes.append((seed, outcome))
    return outcomes


def idle(setting: Setting) -> Rows:
    """Measure the processor time of a page that nobody uses."""
    rows = []
    for precision, path in setting.pages.items():
        page, _ = setting.chromium.open_export(path)
        page.evaluate(script("translate.js"), [[setting.sentence], 1])
        for state in ("in front", "in the background"):
            if state == "in the background":
                page.context.new_page().bring_to_front()
            page.wait_for_timeout(2000)
            before, start = setting.chromium.renderers(), time.perf_counter()
            time.sleep(setting.options.idle_seconds)
            used = setting.chromium.processor_seconds(before)
            percent = round(100 * used / (time.perf_counter() - start), 2)
            rows.append({"precision": precision, "state": state, "percent": percent})
    return rows


PARTS: dict[str, Callable[[Setting], Rows]] = {
    "equal": equal,
    "attention": attention,
    "speed": speed,
    "memory": memory,
    "damage": damage,
    "idle": idle,
}


def show(part: str, rows: Rows) -> None:
    """Print the rows of a part."""
    print(part)
    for row in rows:
        print("   ", ", ".join(f"{name} {value}" for name, value in row.items() if name != "differences"))
        for one in row.get("differences", []):
            print(f"        {one['source']}")
            for side in ("python", "page"):
                print("        {:7} {:9.5f} {}".format(side, *one[side]))


def parse_arguments() -> Namespace:
    parser = machine.parser(__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS), metavar="PART")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "int8"], choices=["fp32", "int8"])
    parser.add_argument("--lines", type=int, default=1000, help="lines of the test text (default 1000)")
    parser.add_argument("--onnxruntime-web", type=Path, metavar="DIR", help="folder in which npm installed it")
    parser.add_argument("--rounds", type=int, default=5, help="times that a page is timed (default 5)")
    parser.add_argument("--repeats", type=int, default=20, help="translations of a page in a round (default 20)")
    parser.add_argument("--translations", type=int, default=1000, help="translations in a row (default 1000)")
    parser.add_argument("--models", type=int, default=10_000, help="damaged models (default 10000)")
    parser.add_argument("--files", type=int, default=500, help="damaged files (default 500)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first damage (default 1)")
    parser.add_argument("--idle-seconds", type=float, default=5, help="seconds without a request (default 5)")
    few = {"lines": 4, "rounds": 1, "repeats": 2, "translations": 20, "models": 12, "files": 3, "idle_seconds": 0.5}
    return machine.parse(parser, tiny=few, required=["run"])


def main() -> None:
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as name, open_chromium() as chromium:
        folder = Path(name)
        run = tiny.train_run(folder) if options.run is None else options.run
        pages = {precision: folder / f"{precision}.html" for precision in options.precisions}
        for precision, path in pages.items():
            path.write_text(html_document(run, pack_run(run, precision)), encoding="utf-8")
        lines = [side[: options.lines] for side in texts(RunDirectory(run).config(), "test", None, None)]
        rounded = round_run(run, folder / "rounded")
        setting = Setting(run, pages, lines[0], lines[1], rounded, chromium, options)
        about = machine.about("playwright", threads=1)
        about["versions"]["chromium"] = chromium.browser.version
        rows = {}
        for part in options.parts:
            rows[part] = PARTS[part](setting)
            if not options.json:
                show(part, rows[part])
    if options.json:
        print(json.dumps({"unit": "ms", **about, "rows": rows}))
        return
    print(machine.describe(about))


if __name__ == "__main__":
    main()
