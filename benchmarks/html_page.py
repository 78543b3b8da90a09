"""Check and measure the exported page of a translator in headless Chromium.

    python benchmarks/html_page.py RUN [--parts equal speed ...] [--precisions fp32 int8] [--lines 1000]
        [--models 10000] [--files 500] [--seed 1] [--json]

RUN is a translator whose test text is on this machine. What is measured is the file that `manyheads export RUN --to
html` writes, opened from file://. Times are in ms.

    equal       translations of the test text by the page and by `Translator` of the same precision, greedy and with
                beam 5, and BLEU of both; every difference is listed with both scores, in nats
    attention   largest difference of the attention weights of the page and of `inspect`, on 50 lines, with the same
                outputs; Python computes in fp32, with the weights of the run and with the rounded ones
    speed       size of the file, time from navigation until the worker is ready, and time of a sentence of 12
                words: the first, and the median of the others; also the processor time of the renderer, which other
                programs change less
    memory      WebAssembly memory, JavaScript heaps after a collection, and resident memory of the renderer less
                that of an empty page, in MiB; 1,000 translations in a row, ten times the same 100: growth in KiB
                each over the last 800
    damage      copies whose model was changed, each in a worker of its own, and copies of the file with changed
                bytes: a translation or a message must come within 10 seconds (a file that ends before the first
                text of the page, in its first 1,000 bytes, stays silent)
    idle        processor time of the renderer over 5 seconds without a request, in percent
"""

from __future__ import annotations

import json
import shutil
import statistics
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
import torch
from playwright.sync_api import Error
from safetensors.torch import load_file, save_file

import machine
import tiny
from exported_page.chromium import Chromium, Heaps, open_chromium, script
from exported_page.mutations import ModelMutations, model_texts, mutated_file
from manyheads.checkpoint import RunDirectory
from manyheads.evaluation import score
from manyheads.inference.inspect import inspect_loaded, load_for_inspection
from manyheads.inference.inspect_options import InspectOptions
from manyheads.inference.native.weights import quantize_int8
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.translator import Translator
from manyheads.training.scored_text import ScoredText
from manyheads.views.codec import array_from_json
from manyheads.web.html_export import html_document, pack_run

WORDS = 12  # words in the sentence that is timed
BEAMS = (1, 5)
TIE_TOLERANCE = 1e-4  # nats between the scores of two translations
ANSWER_TIMEOUT = 10_000  # milliseconds in which a damaged page must answer
MODELS_PER_PAGE = 50  # damaged models before the page that opens them is reopened
Timed = tuple[float, str]  # milliseconds, translation
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Context:
    """The run, pages and texts that all parts use.

    Attributes:
        run: run directory.
        pages: path of the exported page in each precision.
        lines: sources of the test text.
        references: references of the test text.
        rounded: copy of the run with the weights of an int8 page.
        chromium: browser.
        options: command-line options.
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
        """Return the line whose number of words is closest to 12."""
        return min(self.lines, key=lambda line: abs(len(line.split()) - WORDS))


def equal(context: Context) -> Rows:
    """Compare translations of the page and of Python."""
    rows = []
    for precision, path in context.pages.items():
        page, _ = context.chromium.open_export(path)
        translator = Translator.load(context.run, device="cpu", precision=precision)
        for beam in BEAMS:
            translations = page.evaluate(script("translate.js"), [context.lines, beam])
            row = compare(translator.translate(context.lines, beam_size=beam), translations, context)
            rows.append({"page": precision, "beam": beam, **row})
    return rows


def compare(
    python_translations: list[Translation], page_translations: list[dict[str, Any]], context: Context
) -> dict[str, Any]:
    """Compare translations of Python with those of the page."""
    pairs = list(zip(python_translations, page_translations, strict=True))
    differences = [
        {
            "source": ours.source,
            "python": [ours.score, ours.translation],
            "page": [theirs["score"], theirs["translation"]],
        }
        for ours, theirs in pairs
        if ours.translation != theirs["translation"]
    ]
    outputs = {
        "python": [ours.translation for ours, _ in pairs],
        "page": [theirs["translation"] for _, theirs in pairs],
    }
    bleu = {name: score(lines, context.references) for name, lines in outputs.items()}
    return {
        "lines": len(pairs),
        "equal": len(pairs) - len(differences),
        "ties": sum(abs(row["python"][0] - row["page"][0]) < TIE_TOLERANCE for row in differences),
        "largest difference of scores": max(abs(ours.score - theirs["score"]) for ours, theirs in pairs),
        **{f"BLEU of {name}": round(scores.bleu, 2) for name, scores in bleu.items()},
        "signature": bleu["page"].signature["bleu"],
        "differences": differences,
    }


def round_run(run: Path, folder: Path) -> Path:
    """Copy a run with its matrices, token embeddings included, rounded as in an int8 page; return the copy."""
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("checkpoints", "cache"))
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in tensors.items():
        if tensor.ndim == 2 and ".positions." not in name and ".types." not in name:
            integers, scale = quantize_int8(tensor.numpy())
            tensors[name] = torch.from_numpy(integers * scale[:, None])
    save_file(tensors, folder / "model.safetensors")
    return folder


def attention(context: Context) -> Rows:
    """Compare the attention weights of the page with those of Python in fp32."""
    lines = context.lines[:50]
    targets = [
        translation.translation
        for translation in Translator.load(context.run, device="cpu").translate(lines, beam_size=1)
    ]
    rows = []
    for precision, path in context.pages.items():
        page, _ = context.chromium.open_export(path)
        bodies = [
            {"q": line, "target": target, "occlusion": False} for line, target in zip(lines, targets, strict=True)
        ]
        inspected = [page.evaluate("(body) => askModel('api/inspect', body)", body) for body in bodies]
        references = {"fp32 of Python": context.run}
        if precision == "int8":
            references["fp32 of rounded weights"] = context.rounded
        for name, run in references.items():
            loaded = load_for_inspection(run, "cpu")
            largest = {"encoder": 0.0, "decoder": 0.0, "cross": 0.0}
            for line, target, inspection in zip(lines, targets, inspected, strict=True):
                options = InspectOptions(target=target, occlusion=False)
                expected = inspect_loaded(loaded, line, options).packed_dict()
                for ours, theirs in zip(expected["attention"], inspection["attention"], strict=True):
                    gap = np.abs(array_from_json(ours["weights"]) - array_from_json(theirs["weights"])).max()
                    largest[ours["kind"]] = max(largest[ours["kind"]], round(float(gap), 6))
            row = {"page": precision, "reference": name, "lines": len(lines)}
            rows.append({**row, "largest": max(largest.values()), **largest})
    return rows


@contextmanager
def opened_page(context: Context, path: Path, beam: int) -> Iterator[tuple[float, Callable[[int], list[Timed]]]]:
    """Open an exported page; yield the milliseconds until it is ready, and a function that translates."""
    page, ready = context.chromium.open_export(path)

    def translate(count: int) -> list[Timed]:
        translations = page.evaluate(script("translate.js"), [[context.sentence] * count, beam])
        return [(translation["milliseconds"], translation["translation"]) for translation in translations]

    yield ready, translate


@dataclass
class Contender:
    """A page and its times, in ms, in each round.

    Attributes:
        open: opens the page, see `opened_page`.
        megabytes: size of the files of the page in MB.
        ready: time from navigation until the page is ready.
        ready_processor: processor time of the renderer until the page is ready.
        first: time of the first translation.
        times: times of the further translations.
        processor: processor time of each further translation.
        translation: output of the first translation.
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
        """Open the page again and translate with it."""
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
        """Return the medians."""
        names = ("ready", "ready_processor", "first", "times", "processor")
        medians = {name: round(statistics.median(getattr(self, name)), 1) for name in names}
        span = [round(min(self.times), 1), round(max(self.times), 1)]
        return {"MB": round(self.megabytes, 2), **medians, "range": span, "translation": self.translation}


def speed(context: Context) -> Rows:
    """Time all contenders in turn, in each round."""
    contenders = {
        (f"page {precision}", beam): Contender(partial(opened_page, context, path, beam), path.stat().st_size / 1e6)
        for precision, path in context.pages.items()
        for beam in BEAMS
    }
    for _ in range(context.options.rounds):
        for contender in contenders.values():
            contender.measure(context.chromium, context.options.repeats)
    return [{"contender": name, "beam": beam, **contender.row()} for (name, beam), contender in contenders.items()]


def memory(context: Context) -> Rows:
    """Measure the memory of a page, and its growth over many translations."""
    rows, sample_size = [], max(1, context.options.translations // 10)
    for precision, path in context.pages.items():
        weights = pack_run(context.run, precision).packed.header["bytes"] / 2**20
        context.chromium.open("about:blank").wait_for_timeout(1000)
        empty = context.chromium.resident()
        page, _ = context.chromium.open_export(path)
        heaps = Heaps(page)
        samples = []
        lines = [context.lines[number % len(context.lines)] for number in range(sample_size)]
        for _ in range(0, context.options.translations, sample_size):
            page.evaluate(script("translate.js"), [lines, 5])
            samples.append({**heaps.sizes(), "resident": context.chromium.resident() - empty})
        last, late = samples[-1], samples[len(samples) // 5 :]
        slopes = {name: np.polyfit(range(len(late)), [sample[name] for sample in late], 1)[0] for name in last}
        rows.append(
            {
                "precision": precision,
                "weights": round(weights, 2),
                **{name: round(size, 2) for name, size in last.items()},
                "wasm and heaps / weights": round((sum(last.values()) - last["resident"]) / weights, 2),
                "resident / weights": round(last["resident"] / weights, 2),
                "translations": len(samples) * sample_size,
                "growth": {name: round(1024 * float(slope) / sample_size, 3) for name, slope in slopes.items()},
            }
        )
    return rows


def damage(context: Context) -> Rows:
    """Open damaged models and damaged files."""
    precision, path = list(context.pages.items())[-1]
    page, _ = context.chromium.open_export(path)
    (expected,) = page.evaluate(script("translate.js"), [[context.sentence], 2])
    rows = []
    for name, outcomes in (("model", damaged_models(context, path)), ("file", damaged_files(context, path))):
        kinds: Counter[str] = Counter()
        bad, messages = [], Counter[str]()
        for seed, outcome in outcomes:
            kind, _, words = outcome.partition(" ")
            if kind == "translation":
                kind = "same translation" if words == expected["translation"] else "other translation"
            elif kind in ("hang", "crash", "silent"):
                bad.append([seed, outcome])
            else:
                kind = "message"
                messages[outcome[:60]] += 1
            kinds[kind] += 1
        row = {"what": name, "precision": precision, "copies": len(outcomes), "outcomes": dict(kinds), "bad": bad}
        rows.append({**row, "messages": dict(messages.most_common(15))})
    return rows


def damaged_models(context: Context, path: Path) -> list[tuple[int, str]]:
    """Translate with damaged models, each in its own worker; return seeds and outcomes."""
    original_texts = model_texts(path.read_text(encoding="utf-8"))
    mutations = ModelMutations(original_texts)
    outcomes = []
    for number in range(context.options.models):
        seed = context.options.seed + number
        if number % MODELS_PER_PAGE == 0:
            page = context.chromium.open("about:blank")
            page.add_script_tag(content=script("edited.js"))
            page.evaluate("(texts) => setOriginalTexts(texts)", original_texts)
        try:
            values = [mutations.edits(seed), context.sentence, ANSWER_TIMEOUT]
            outcome = page.evaluate("(values) => translateEdited(...values)", values)
        except Error as error:
            outcome = f"crash {error.message}"
        outcomes.append((seed, outcome))
    return outcomes


def damaged_files(context: Context, path: Path) -> list[tuple[int, str]]:
    """Open files with changed bytes, each in its own page; return seeds and outcomes."""
    data, outcomes = path.read_bytes(), []
    damaged = path.with_name("damaged.html")
    code = script("outcome.js").replace("SENTENCE", json.dumps(context.sentence))
    for seed in range(context.options.seed, context.options.seed + context.options.files):
        damaged.write_bytes(mutated_file(data, seed))
        page = context.chromium.open("about:blank")
        page.add_init_script(code)
        try:
            with page.expect_console_message(
                lambda line: line.text.startswith("outcome "), timeout=ANSWER_TIMEOUT
            ) as line:
                page.goto(damaged.as_uri(), wait_until="commit")
            outcome = line.value.text.removeprefix("outcome ")
        except Error as error:
            outcome = f"hang {error.message}"
        outcomes.append((seed, outcome))
    return outcomes


def idle(context: Context) -> Rows:
    """Measure the processor time of a page without requests."""
    rows = []
    for precision, path in context.pages.items():
        page, _ = context.chromium.open_export(path)
        page.evaluate(script("translate.js"), [[context.sentence], 1])
        for state in ("in front", "in the background"):
            if state == "in the background":
                page.context.new_page().bring_to_front()
            page.wait_for_timeout(2000)
            before, start = context.chromium.renderers(), time.perf_counter()
            time.sleep(context.options.idle_seconds)
            used = context.chromium.processor_seconds(before)
            percent = round(100 * used / (time.perf_counter() - start), 2)
            rows.append({"precision": precision, "state": state, "percent": percent})
    return rows


PARTS: dict[str, Callable[[Context], Rows]] = {
    "equal": equal,
    "attention": attention,
    "speed": speed,
    "memory": memory,
    "damage": damage,
    "idle": idle,
}


def print_part(part: str, rows: Rows) -> None:
    """Print the rows of a part."""
    print(part)
    for row in rows:
        print("   ", ", ".join(f"{name} {value}" for name, value in row.items() if name != "differences"))
        for difference in row.get("differences", []):
            print(f"        {difference['source']}")
            for side in ("python", "page"):
                print("        {:7} {:9.5f} {}".format(side, *difference[side]))


def parse_arguments() -> Namespace:
    parser = machine.parser(__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS), metavar="PART")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "int8"], choices=["fp32", "int8"])
    parser.add_argument("--lines", type=int, default=1000, help="lines of the test text (default 1000)")
    parser.add_argument("--rounds", type=int, default=5, help="times that a page is timed (default 5)")
    parser.add_argument("--repeats", type=int, default=20, help="translations of a page in a round (default 20)")
    parser.add_argument("--translations", type=int, default=1000, help="translations in a row (default 1000)")
    parser.add_argument("--models", type=int, default=10_000, help="damaged models (default 10000)")
    parser.add_argument("--files", type=int, default=500, help="damaged files (default 500)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first damage (default 1)")
    parser.add_argument("--idle-seconds", type=float, default=5, help="seconds without a request (default 5)")
    tiny = {
        "lines": 4,
        "rounds": 1,
        "repeats": 2,
        "translations": 20,
        "models": 12,
        "files": 3,
        "idle_seconds": 0.5,
    }
    return machine.parse(parser, tiny=tiny, required=["run"])


def main() -> None:
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as temporary, open_chromium() as chromium:
        folder = Path(temporary)
        run = tiny.train_run(folder) if options.run is None else options.run
        pages = {precision: folder / f"{precision}.html" for precision in options.precisions}
        for precision, path in pages.items():
            path.write_text(html_document(run, pack_run(run, precision)), encoding="utf-8")
        lines = [side[: options.lines] for side in ScoredText().pairs(RunDirectory(run).config())]
        rounded = round_run(run, folder / "rounded")
        context = Context(run, pages, lines[0], lines[1], rounded, chromium, options)
        about = machine.about("playwright", threads=1)
        about["versions"]["chromium"] = chromium.browser.version
        rows = {}
        for part in options.parts:
            rows[part] = PARTS[part](context)
            if not options.json:
                print_part(part, rows[part])
    if options.json:
        print(json.dumps({"unit": "ms", **about, "rows": rows}))
        return
    print(machine.describe(about))


if __name__ == "__main__":
    main()
