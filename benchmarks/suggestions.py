"""Measure how many good and bad suggestions `manyheads corrections review` accepts, with a run and without.

    python benchmarks/suggestions.py RUN --pairs SOURCE TARGET [--pairs ...] --foreign FILE... [--json]

Each --pairs names two files of lines that the run was not trained on. 70 % of the suggestions are good: references
of these lines, outputs of the run in which one place was corrected from the reference, and outputs in which a word
was replaced by a made-up term. 30 % are junk, made by the rules `KNOWN`; --foreign has lines in other languages.
The lines are divided into halves. The limits of the review were chosen with the kinds `KNOWN` on the first half,
but scores of other draws, which overlap the second, had been looked at. The kinds `NEW`, which were made later,
are counted apart, in the second half. So is one wrong word in a right output: no rule tells it from a term that
the model does not know. Figures are shares of suggestions that are held back, from 0 to 1.
"""

from __future__ import annotations

import argparse
import json
import random
import tomllib
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from bitext.lines import read_lines
from harness import FOLDER, Document, main, option
from manyheads.data.suggestions import Suggestion, SuggestionFile
from manyheads.improve.corrections import review_corrections
from manyheads.inference.translation.translator import Translator
from material import RUN, pairs_option, read_rows, translations, write
from unlike_training import keyboard_noise

TEXTS: dict[str, list[str]] = tomllib.loads((FOLDER / "suggestions.toml").read_text(encoding="utf-8"))


class Line(NamedTuple):
    source: str
    output: str
    reference: str


class Maker:
    """What suggestions are made from.

    Args:
        lines: lines to take other targets from.
        foreign: lines in other languages.
        seed: seed of all choices.
    """

    def __init__(self, lines: list[Line], foreign: list[str], seed: int) -> None:
        self.lines, self.foreign = lines, foreign
        self.rng = random.Random(seed)

    def other(self) -> Line:
        return self.rng.choice(self.lines)

    def noise(self) -> str:
        return keyboard_noise(1, self.rng.randrange(2**30))[0]

    def with_word(self, line: Line, word: str) -> str:
        """Return the output with a word in place of another one, with its mark."""
        words = line.output.split()
        place = self.rng.randrange(len(words))
        mark = words[place][-1] if words[place][-1] in ".,!?" else ""
        return " ".join([*words[:place], word + mark, *words[place + 1 :]])


def corrected_place(maker: Maker, line: Line) -> str:
    """Return the output with one of the places, of three words at most, where the reference differs."""
    words, right = line.output.split(), line.reference.split()
    places = [
        place
        for place in SequenceMatcher(None, words, right, autojunk=False).get_opcodes()
        if place[0] != "equal" and max(place[2] - place[1], place[4] - place[3]) <= 3
    ]
    if not places:
        return line.output
    _, first, last, start, end = maker.rng.choice(places)
    return " ".join([*words[:first], *right[start:end], *words[last:]])


def made_up_term(maker: Maker, line: Line) -> str:
    parts = (["Kra", "Zyn", "Mo", "Fel"], ["lo", "ti", "ra"], ["max", "form", "nit"])
    return maker.with_word(line, "".join(maker.rng.choice(part) for part in parts))


def nearly_copied_source(maker: Maker, line: Line) -> str:
    words = line.source.split()
    words[maker.rng.randrange(len(words))] = maker.rng.choice(line.output.split())
    return " ".join(words) if len(words) > 4 else line.source.upper()


def repetition(maker: Maker, line: Line) -> str:
    words, count = line.output.split(), maker.rng.randint(1, 3)
    place = maker.rng.randrange(len(words))
    return " ".join([*words[:place], *words[place : place + count] * maker.rng.randint(4, 10), *words[place:]])


def cut_output(maker: Maker, line: Line) -> str:
    words = line.output.split()
    return " ".join(words[: max(1, int(len(words) * maker.rng.uniform(0.3, 0.7)))])


def mixed_words(maker: Maker, line: Line) -> str:
    words = line.output.split()
    return " ".join(maker.rng.sample(words, len(words)))


def half_source(maker: Maker, line: Line) -> str:
    words, others = line.output.split(), line.source.split()
    return " ".join([*words[: len(words) // 2], *others[len(others) // 2 :]])


def one_wrong_word(maker: Maker, line: Line) -> str:
    return maker.with_word(line, maker.rng.choice([maker.rng.choice(TEXTS["insults"]), maker.noise().split()[0]]))


Kinds = Sequence[tuple[str, Callable[[Maker, Line], str]]]
REFERENCE = ("reference", lambda maker, line: line.reference)
GOOD: Kinds = [
    REFERENCE,
    REFERENCE,
    ("corrected place", corrected_place),
    REFERENCE,
    ("made up term", made_up_term),
]
LETTERS = "abcdefghijklmnopqrstuvwxyz.?!"
NO_LETTERS = (" ", ".", "...", "?!", "- -", "\u200b", ":-)", "🙂", "___", "123")
REMARKS = ('It should be "{}"', "{} (this is better)", "I would say: {}")
KNOWN: Kinds = [
    ("letters", lambda maker, line: maker.rng.choice(LETTERS) * maker.rng.randint(1, 30)),
    ("copied source", lambda maker, line: line.source),
    ("nearly copied source", nearly_copied_source),
    ("target of another", lambda maker, line: maker.other().reference),
    ("other language", lambda maker, line: maker.rng.choice(maker.foreign)),
    ("source of another", lambda maker, line: maker.other().source),
    ("keyboard", lambda maker, line: maker.noise()),
    ("repetition", repetition),
    ("without letters", lambda maker, line: maker.rng.choice(NO_LETTERS)),
    ("insult", lambda maker, line: " ".join([maker.rng.choice(TEXTS["insults"])] * maker.rng.randint(1, 6))),
    ("cut output", cut_output),
    ("mixed words", mixed_words),
    ("half source", half_source),
    ("output twice", lambda maker, line: f"{line.output} {line.output}"),
    ("another sentence appended", lambda maker, line: f"{line.output} {maker.other().reference}"),
]
NEW: Kinds = [
    ("advert", lambda maker, line: maker.rng.choice(TEXTS["adverts"])),
    ("comment", lambda maker, line: maker.rng.choice(TEXTS["comments"])),
    ("backwards", lambda maker, line: line.output[::-1]),
    ("blanks between letters", lambda maker, line: " ".join(line.output.replace(" ", ""))),
    ("every other word", lambda maker, line: " ".join(line.output.split()[::2])),
    ("remark around it", lambda maker, line: maker.rng.choice(REMARKS).format(line.output)),
]
APART: Kinds = [("one wrong word", one_wrong_word)]


def make_suggestions(maker: Maker, kinds: Kinds, count: int, lines: Iterator[Line]) -> list[tuple[str, Line, str]]:
    """Return so many suggestions, in turn of each kind: the name of the kind, the line, the suggestion."""
    made: list[tuple[str, Line, str]] = []
    while len(made) < count:
        kind, line = kinds[len(made) % len(kinds)], next(lines)
        name, make = kind
        text = make(maker, line) if len(line.output.split()) > 2 or kind is REFERENCE else line.output
        if text != line.output and (kind in GOOD or text != line.reference):
            made.append((name, line, text))
    return made


def held_back(
    run: Path | None, languages: tuple[str, str], groups: dict[str, list[tuple[str, Line, str]]], folder: Path
) -> dict[str, float]:
    """Review the suggestions of all groups as one file; return the share held back of each group and each kind."""
    made = [suggestion for group in groups.values() for suggestion in group]
    random.Random(1).shuffle(made)
    lines = (
        json.dumps(vars(Suggestion(f"{number:06}", languages, line.source, line.output, text, None)))
        for number, (_, line, text) in enumerate(made)
    )
    file = SuggestionFile(write(folder / "suggestions.jsonl", lines))
    review = review_corrections(file.path, run, device="cpu")
    accepted = {(suggestion.source, suggestion.text) for suggestion in review.of("accepted")}
    result = {}
    for name, group in groups.items():
        kinds = dict.fromkeys(kind for kind, _, _ in group)
        chosen = {name: group} | {
            f"{name}: {kind}": [entry for entry in group if entry[0] == kind] for kind in kinds
        }
        for label, own in chosen.items():
            held = sum((line.source.strip(), text.strip()) not in accepted for _, line, text in own)
            result[label] = held / len(own)
    return result


def lines_of(arguments: argparse.Namespace, translator: Translator) -> list[Line]:
    lines = []
    for files in arguments.pairs:
        texts = read_rows(files)
        texts = random.Random(0).sample(texts, min(len(texts), arguments.lines))
        outputs = translations(translator, [source for source, _ in texts])
        if arguments.tiny:  # the run has learned nothing
            outputs = [" ".join(reversed(reference.split())) for _, reference in texts]
        lines += [Line(source, output, target) for (source, target), output in zip(texts, outputs, strict=True)]
    random.Random(0).shuffle(lines)
    return lines


def measure(arguments: argparse.Namespace) -> Document:
    """Review suggestions of both halves of the lines, with the run and without."""
    translator = Translator.load(arguments.run, device="cpu")
    languages = translator.config.data.source, translator.config.data.target
    lines = lines_of(arguments, translator)
    foreign = [line for path in arguments.foreign for line in read_lines(path)]
    if arguments.tiny:
        foreign = ["오늘은 날씨가 좋습니다.", "Le chien dort sur le canapé rouge."]
    rows = {}
    for half, name in enumerate(("first half", "second half")):
        own = cycle(lines[half::2])
        maker = Maker(lines[half::2], foreign, arguments.seed + half)
        good = round(0.7 * arguments.count)
        groups = {
            "good": make_suggestions(maker, GOOD, good, own),
            "junk": make_suggestions(maker, KNOWN, arguments.count - good, own),
            "one wrong word": make_suggestions(maker, APART, arguments.count // 20, own),
        }
        if name == "second half":
            groups["new kinds"] = make_suggestions(maker, NEW, arguments.count // 10, own)
        sides = {"with the run": arguments.run, "without a run": None}
        rows[name] = {side: held_back(run, languages, groups, arguments.folder) for side, run in sides.items()}
    return {"rows": rows}


OPTIONS = {
    "run": RUN,
    "--pairs": pairs_option("test"),
    "--foreign": option(Path, "lines in other languages", nargs="+", default=[]),
    "--count": option(1_000, "suggestions of each half", tiny=40),
    "--lines": option(3_000, "lines of each --pairs, at most"),
    "--seed": option(1, "seed of all choices"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="share held back")
