"""Measure how a translator obeys a glossary, and the speed with 1,000 terms against that without.

    python benchmarks/terms.py RUN --pairs SOURCE TARGET... [--sentences 300] [--json]

The terms are words of held-out pairs whose translation, found by alignment in the training text of the run, is in
the reference. A term counts as obeyed if the output has this translation. For the speed, the same lines are
translated in turn without a glossary, with 1,000 terms that they do not have, and with the terms of the pairs.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import machine
from manyheads.data.augment_phrases import mine_phrases
from manyheads.data.glossary import Glossary, Term
from manyheads.data.lines import read_lines
from manyheads.data.store import TextStore
from manyheads.evaluation.scores import score
from manyheads.tasks.translation import Translator
from tiny import train_run

MARKS = ",.!?;:\"'"


class Example(NamedTuple):
    """A held-out pair, and a word of its source with its translation."""

    source: str
    reference: str
    term: Term


def find_examples(pairs: Iterable[tuple[str, str]], links: dict[str, str], count: int) -> list[Example]:
    """Return pairs with a linked word whose translation is in the reference once; one term a pair."""
    examples: list[Example] = []
    for source, reference in pairs:
        translated = [word.strip(MARKS) for word in reference.split()]
        for word in (word.strip(MARKS) for word in source.split()):
            target = links.get(word.lower(), "")
            if translated.count(target) == 1:
                examples.append(Example(source, reference, Term(word, target, "")))
                break
    return examples[:count]


def translate(translator: Translator, lines: Sequence[str]) -> list[str]:
    return [result.translation for result in translator.translate(lines)]


def measure_obedience(translator: Translator, named: Translator, examples: Sequence[Example]) -> dict[str, Any]:
    """Translate the examples without and with the glossary."""
    rows: dict[str, Any] = {}
    missed: list[bool] = []
    for name, arm in (("without", translator), ("with", named)):
        outputs = translate(arm, [one.source for one in examples])
        found = [
            one.term.target in [word.strip(MARKS) for word in output.split()]
            for one, output in zip(examples, outputs, strict=True)
        ]
        among_missed = [now for now, before in zip(found, missed or found, strict=True) if before]
        rows[name] = {
            "obeyed": statistics.mean(found),
            "obeyed where not without": statistics.mean(among_missed) if missed and among_missed else None,
            "BLEU": score(outputs, [one.reference for one in examples]).bleu,
        }
        missed = [not now for now in found] if name == "without" else missed
    return rows


def measure_speed(arms: dict[str, Translator], lines: Sequence[str], rounds: int) -> dict[str, Any]:
    """Return the seconds of the processor that each arm takes, median and range, and how many times the first."""
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(rounds + 1):
        for name, arm in arms.items():
            start = time.process_time()
            arm.translate(lines)
            if number:  # the first round warms up
                seconds[name].append(time.process_time() - start)
    base = statistics.median(next(iter(seconds.values())))
    return {
        name: {"seconds": statistics.median(values), "range": [min(values), max(values)],
               "times the first": statistics.median(values) / base}
        for name, values in seconds.items()
    }  # fmt: skip


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--pairs", type=Path, nargs=2, help="files of held-out sources and references")
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = machine.parse(parser, tiny={"sentences": 2, "rounds": 1}, required=["run", "pairs"])
    with tempfile.TemporaryDirectory() as folder:
        run, files = arguments.run, arguments.pairs
        if arguments.tiny:
            run, files = train_run(Path(folder)), [Path(folder) / "test.de", Path(folder) / "test.en"]
        words = mine_phrases(*TextStore(run / "cache" / "text").sides()).words
        links = {pair.source.lower(): pair.target for pair in words}
        pairs = zip(*map(read_lines, files), strict=True)
        examples = find_examples(pairs, links, arguments.sentences)
        translator = Translator.load(run, device="cpu")
        own = Glossary({one.term.source: one.term for one in examples}.values())
        lines = [one.source for one in examples]
        absent = [Term(source, target, "") for source, target in links.items()]
        while used := {term for line in lines for term in Glossary(absent).find(line)}:  # also with an ending
            absent = [term for term in absent if term not in used]
        absent += [Term(f"absent{number}", "word", "") for number in range(1000 - len(absent))]
        named = translator.with_glossary(own)
        arms = {
            "none": translator,
            "1,000 terms that no line has": translator.with_glossary(Glossary(absent[:1000])),
            "a term or more in each line": named,
        }
        rows = {
            "sentences": len(examples),
            "terms": len(own.terms),
            "glossary": measure_obedience(translator, named, examples),
            "speed": measure_speed(arms, lines, arguments.rounds),
        }
    about = machine.about()
    if arguments.json:
        print(json.dumps({"unit": "share, BLEU, seconds of the processor", **about, "rows": rows}))
        return
    print(machine.describe(about))
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
