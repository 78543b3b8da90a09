"""Check and measure the exported page of a translator in headless Chromium.

    python benchmarks/html_page.py RUN [--parts equal speed] [--precisions fp32 int8] [--lines 1000] [--json]

RUN is a translator whose test text is on this machine. What is measured is the file that `manyheads export RUN --to
html` writes, opened from file://. Times are in ms.

    equal       translations of the test text by the page and by `Translator` of the same precision, greedy and with
                beam 5, and BLEU of both; every difference is listed with both scores, in nats
    speed       size of the file, time from navigation until the worker is ready, and time of a sentence of 12
                words: the first, and the median of the others; also the processor time of the renderer, which other
                programs change less. All pages are opened in turn, in each round
"""

from __future__ import annotations

import argparse
import statistics
from itertools import product
from pathlib import Path
from typing import Any

from exported_page.chromium import Chromium, open_chromium, script
from harness import Document, main, option
from manyheads.checkpoint import RunDirectory
from manyheads.evaluation import score
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.translator import Translator
from manyheads.training.scored_text import ScoredText
from manyheads.web.html_export import html_document, pack_run
from material import RUN

WORDS = 12  # words in the sentence that is timed
BEAMS = (1, 5)
TIE_TOLERANCE = 1e-4  # nats between the scores of two translations
Pages = dict[str, Path]
Rows = list[Document]


def equal(chromium: Chromium, pages: Pages, arguments: argparse.Namespace) -> Rows:
    rows = []
    for precision, path in pages.items():
        page, _ = chromium.open_export(path)
        translator = Translator.load(arguments.run, device="cpu", precision=precision)
        for beam in BEAMS:
            theirs = page.evaluate(script("translate.js"), [arguments.sources, beam])
            ours = translator.translate(arguments.sources, beam_size=beam)
            rows.append({"page": precision, "beam": beam, **compare(ours, theirs, arguments.references)})
    return rows


def compare(
    python_translations: list[Translation], page_translations: list[dict[str, Any]], references: list[str]
) -> Document:
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
    bleu = {name: score(lines, references) for name, lines in outputs.items()}
    return {
        "lines": len(pairs),
        "equal": len(pairs) - len(differences),
        "ties": sum(abs(row["python"][0] - row["page"][0]) < TIE_TOLERANCE for row in differences),
        "largest difference of scores": max(abs(ours.score - theirs["score"]) for ours, theirs in pairs),
        **{f"BLEU of {name}": round(scores.bleu, 2) for name, scores in bleu.items()},
        "signature": bleu["page"].signature["bleu"],
        "differences": differences,
    }


def speed(chromium: Chromium, pages: Pages, arguments: argparse.Namespace) -> Rows:
    """Time the sentence whose number of words is closest to 12 in all pages, in turn."""
    sentence = min(arguments.sources, key=lambda line: abs(len(line.split()) - WORDS))
    contenders = [(precision, beam, path) for (precision, path), beam in product(pages.items(), BEAMS)]
    measured: dict[tuple[str, int], list[Document]] = {}
    for _ in range(arguments.rounds):
        for precision, beam, path in contenders:
            found = time_page(chromium, path, sentence, beam, arguments.repeats)
            measured.setdefault((precision, beam), []).append(found)
    rows = []
    for precision, beam, path in contenders:
        own = measured[precision, beam]
        medians = {
            name: round(statistics.median(found[name] for found in own), 1)
            for name in ("ready", "ready_processor", "first", "processor")
        }
        times = [milliseconds for found in own for milliseconds in found["times"]]
        rows.append(
            {
                "page": precision,
                "beam": beam,
                "MB": round(path.stat().st_size / 1e6, 2),
                **medians,
                "times": round(statistics.median(times), 1),
                "range": [round(min(times), 1), round(max(times), 1)],
                "translation": own[-1]["translation"],
            }
        )
    return rows


def time_page(chromium: Chromium, path: Path, sentence: str, beam: int, repeats: int) -> Document:
    """Open a page in a renderer of its own, and translate a sentence with it once, then several times."""
    start = chromium.renderers()
    page, ready = chromium.open_export(path)
    ready_processor = 1000 * chromium.processor_seconds(start)
    (first,) = page.evaluate(script("translate.js"), [[sentence], beam])
    start = chromium.renderers()
    others = page.evaluate(script("translate.js"), [[sentence] * repeats, beam])
    return {
        "ready": ready,
        "ready_processor": ready_processor,
        "first": first["milliseconds"],
        "times": [other["milliseconds"] for other in others],
        "processor": 1000 * chromium.processor_seconds(start) / repeats,
        "translation": first["translation"],
    }


PARTS = {"equal": equal, "speed": speed}


def measure(arguments: argparse.Namespace) -> Document:
    pages = {precision: arguments.folder / f"{precision}.html" for precision in arguments.precisions}
    for precision, path in pages.items():
        path.write_text(html_document(arguments.run, pack_run(arguments.run, precision)), encoding="utf-8")
    texts = ScoredText().pairs(RunDirectory(arguments.run).config())
    arguments.sources, arguments.references = (side[: arguments.lines] for side in texts)
    with open_chromium() as chromium:
        rows = {part: PARTS[part](chromium, pages, arguments) for part in arguments.parts}
        return {"rows": rows, "versions": {"chromium": chromium.browser.version}}


OPTIONS = {
    "run": RUN,
    "--parts": option(list(PARTS), "parts to measure", choices=list(PARTS), metavar="PART"),
    "--precisions": option(["fp32", "int8"], "pages to measure", choices=["fp32", "int8"]),
    "--lines": option(1000, "lines of the test text", tiny=4),
    "--rounds": option(5, "times that a page is timed", tiny=1),
    "--repeats": option(20, "translations of a page in a round", tiny=2),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="ms", packages=["playwright"], threads=1)
