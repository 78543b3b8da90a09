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

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import machine
from bitext.lines import read_lines
from manyheads.data.suggestions import Suggestion, SuggestionFile
from manyheads.improve.corrections import review_corrections
from manyheads.inference.translation.grouped import translate_in_groups
from manyheads.inference.translation.translator import Translator
from tiny import train_run
from unlike_training import keyboard_noise

INSULTS = ("idiot", "stupid", "bad", "rubbish", "wrong", "lol", "boring", "fake", "ugly", "hello", "test")
COMMENTS = (
    "This is wrong.", "Please fix this translation.", "I don't know.", "Bad translation!", "no", "OK", "better",
    "The first word is wrong.", "You should learn German.", "It means something else.", "see above",
)  # fmt: skip
ADVERTS = (
    "Buy cheap watches at http://shop.example", "Win 1000 dollars now, click here!",
    "Lose 10 kilos in a week with this trick.", "Call +1 555 0100 for a free loan.", "Follow me now.",
)  # fmt: skip


class Line(NamedTuple):
    """A line with the output of the run and its reference."""

    source: str
    output: str
    reference: str


class Maker:
    """Makes suggestions from lines.

    Args:
        lines: lines to take other targets from.
        foreign: lines in other languages.
        seed: seed of all choices.
    """

    def __init__(self, lines: list[Line], foreign: list[str], seed: int) -> None:
        self.lines, self.foreign = lines, foreign
        self.rng = random.Random(seed)

    # --- good ones ---

    def reference(self, line: Line) -> str:
        return line.reference

    def corrected_place(self, line: Line) -> str:
        """Return the output with one of the places, of three words at most, where the reference differs."""
        words, right = line.output.split(), line.reference.split()
        places = [
            place
            for place in SequenceMatcher(None, words, right, autojunk=False).get_opcodes()
            if place[0] != "equal" and max(place[2] - place[1], place[4] - place[3]) <= 3
        ]
        if not places:
            return line.output
        _, first, last, start, end = self.rng.choice(places)
        return " ".join([*words[:first], *right[start:end], *words[last:]])

    def made_up_term(self, line: Line) -> str:
        term = "".join(
            self.rng.choice(part)
            for part in (["Kra", "Zyn", "Mo", "Fel"], ["lo", "ti", "ra"], ["max", "form", "nit"])
        )
        return self.with_word(line, term)

    def with_word(self, line: Line, word: str) -> str:
        """Return the output with a word in place of another one, with its mark."""
        words = line.output.split()
        place = self.rng.randrange(len(words))
        mark = words[place][-1] if words[place][-1] in ".,!?" else ""
        return " ".join([*words[:place], word + mark, *words[place + 1 :]])

    # --- junk, kinds that were known when the limits were chosen ---

    def letters(self, line: Line) -> str:
        return self.rng.choice("abcdefghijklmnopqrstuvwxyz.?!") * self.rng.randint(1, 30)

    def copied_source(self, line: Line) -> str:
        return line.source

    def nearly_copied_source(self, line: Line) -> str:
        words = line.source.split()
        words[self.rng.randrange(len(words))] = self.rng.choice(line.output.split())
        return " ".join(words) if len(words) > 4 else line.source.upper()

    def target_of_another(self, line: Line) -> str:
        return self.rng.choice(self.lines).reference

    def other_language(self, line: Line) -> str:
        return self.rng.choice(self.foreign)

    def source_of_another(self, line: Line) -> str:
        return self.rng.choice(self.lines).source

    def keyboard(self, line: Line) -> str:
        return keyboard_noise(1, self.rng.randrange(2**30))[0]

    def repetition(self, line: Line) -> str:
        words, count = line.output.split(), self.rng.randint(1, 3)
        place = self.rng.randrange(len(words))
        return " ".join([*words[:place], *words[place : place + count] * self.rng.randint(4, 10), *words[place:]])

    def without_letters(self, line: Line) -> str:
        return self.rng.choice([" ", ".", "...", "?!", "- -", "\u200b", ":-)", "🙂", "___", "123"])

    def insult(self, line: Line) -> str:
        return " ".join([self.rng.choice(INSULTS)] * self.rng.randint(1, 6))

    def cut_output(self, line: Line) -> str:
        words = line.output.split()
        return " ".join(words[: max(1, int(len(words) * self.rng.uniform(0.3, 0.7)))])

    def mixed_words(self, line: Line) -> str:
        words = line.output.split()
        return " ".join(self.rng.sample(words, len(words)))

    def half_source(self, line: Line) -> str:
        words, others = line.output.split(), line.source.split()
        return " ".join([*words[: len(words) // 2], *others[len(others) // 2 :]])

    def output_twice(self, line: Line) -> str:
        return f"{line.output} {line.output}"

    def another_sentence_appended(self, line: Line) -> str:
        return f"{line.output} {self.rng.choice(self.lines).reference}"

    # --- junk, further kinds ---

    def advert(self, line: Line) -> str:
        return self.rng.choice(ADVERTS)

    def comment(self, line: Line) -> str:
        return self.rng.choice(COMMENTS)

    def backwards(self, line: Line) -> str:
        return line.output[::-1]

    def blanks_between_letters(self, line: Line) -> str:
        return " ".join(line.output.replace(" ", ""))

    def every_other_word(self, line: Line) -> str:
        return " ".join(line.output.split()[::2])

    def remark_around_it(self, line: Line) -> str:
        return self.rng.choice(['It should be "{}"', "{} (this is better)", "I would say: {}"]).format(line.output)

    # --- counted apart ---

    def one_wrong_word(self, line: Line) -> str:
        return self.with_word(
            line,
            self.rng.choice([self.rng.choice(INSULTS), keyboard_noise(1, self.rng.randrange(2**30))[0].split()[0]]),
        )


Kind = Callable[[Maker, Line], str]
GOOD: tuple[Kind, ...] = (
    Maker.reference,
    Maker.reference,
    Maker.corrected_place,
    Maker.reference,
    Maker.made_up_term,
)
KNOWN: tuple[Kind, ...] = (
    Maker.letters, Maker.copied_source, Maker.nearly_copied_source, Maker.target_of_another, Maker.other_language,
    Maker.source_of_another, Maker.keyboard, Maker.repetition, Maker.without_letters, Maker.insult,
    Maker.cut_output, Maker.mixed_words, Maker.half_source, Maker.output_twice,
    Maker.another_sentence_appended,
)  # fmt: skip
NEW: tuple[Kind, ...] = (
    Maker.advert, Maker.comment, Maker.backwards, Maker.blanks_between_letters, Maker.every_other_word,
    Maker.remark_around_it,
)  # fmt: skip
APART: tuple[Kind, ...] = (Maker.one_wrong_word,)


def make_suggestions(
    maker: Maker, kinds: tuple[Kind, ...], count: int, lines: Iterator[Line]
) -> list[tuple[str, Line, str]]:
    """Return so many suggestions, in turn of each kind: the name of the kind, the line, the suggestion."""
    made: list[tuple[str, Line, str]] = []
    while len(made) < count:
        kind, line = kinds[len(made) % len(kinds)], next(lines)
        text = kind(maker, line) if len(line.output.split()) > 2 or kind is Maker.reference else line.output
        if text != line.output and (kind in GOOD or text != line.reference):
            made.append((kind.__name__.replace("_", " "), line, text))
    return made


def measure(
    run: Path | None, languages: tuple[str, str], groups: dict[str, list[tuple[str, Line, str]]]
) -> dict[str, float]:
    """Review the suggestions of all groups as one file; return the share held back of each group and each kind."""
    made = [one for group in groups.values() for one in group]
    random.Random(1).shuffle(made)
    with tempfile.TemporaryDirectory() as folder:
        file = SuggestionFile(Path(folder) / "suggestions.jsonl")
        with file.path.open("w", encoding="utf-8") as stream:
            for number, (_, line, text) in enumerate(made):
                suggestion = Suggestion(f"{number:06}", languages, line.source, line.output, text, None)
                stream.write(json.dumps(vars(suggestion)) + "\n")
        review = review_corrections(file.path, run, device="cpu")
    accepted = {(one.source, one.text) for one in review.of("accepted")}
    held = {
        (line.source, text.strip()): (line.source.strip(), text.strip()) not in accepted for _, line, text in made
    }
    result = {}
    for name, group in groups.items():
        kinds = {name: group} | {
            f"{name}: {kind}": [one for one in group if one[0] == kind]
            for kind in dict.fromkeys(one[0] for one in group)
        }
        for label, chosen in kinds.items():
            result[label] = sum(held[line.source, text.strip()] for _, line, text in chosen) / len(chosen)
    return result


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--pairs", type=Path, nargs=2, action="append", default=[], metavar=("SOURCE", "TARGET"))
    parser.add_argument("--foreign", type=Path, nargs="+", default=[])
    parser.add_argument("--count", type=int, default=1_000, help="suggestions of each half")
    parser.add_argument("--lines", type=int, default=3_000, help="lines of each --pairs, at most")
    parser.add_argument("--seed", type=int, default=1)
    arguments = machine.parse(parser, tiny={"count": 40}, required=["run"])
    with tempfile.TemporaryDirectory() as folder:
        run, pairs = arguments.run, arguments.pairs
        foreign = [line for path in arguments.foreign for line in read_lines(path)]
        if arguments.tiny:
            run, pairs = train_run(Path(folder)), [(Path(folder) / "test.de", Path(folder) / "test.en")]
            foreign = ["오늘은 날씨가 좋습니다.", "Le chien dort sur le canapé rouge."]
        translator = Translator.load(run, device="cpu")
        languages = translator.config.data.source, translator.config.data.target
        lines = []
        for source, target in pairs:
            texts = list(zip(read_lines(source), read_lines(target), strict=True))
            texts = random.Random(0).sample(texts, min(len(texts), arguments.lines))
            outputs = [one.translation for one in translate_in_groups(translator, [first for first, _ in texts])]
            if arguments.tiny:  # the run has learned nothing
                outputs = [" ".join(reversed(second.split())) for _, second in texts]
            lines += [Line(first, output, second) for (first, second), output in zip(texts, outputs, strict=True)]
        random.Random(0).shuffle(lines)
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
            rows[name] = {
                "with the run": measure(run, languages, groups),
                "without a run": measure(None, languages, groups),
            }
    about = machine.about()
    if arguments.json:
        print(json.dumps({"unit": "share held back", **about, "rows": rows}))
        return
    print(machine.describe(about))
    for name, reviews in rows.items():
        print(f"\n{name:<40} with the run  without")
        for kind, share in reviews["with the run"].items():
            print(f"{kind:<40} {share:12.1%} {reviews['without a run'][kind]:8.1%}")


if __name__ == "__main__":
    main()
