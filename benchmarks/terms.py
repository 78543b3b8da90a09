"""Train a recipe with and without hints (`data.terms`), and measure how both arms obey a glossary, and its cost.

    python benchmarks/terms.py multi30k-de-en --set data.root=DIR [--set SECTION.KEY=VALUE]... --out FOLDER
        --pairs SOURCE TARGET [--pairs SOURCE TARGET]... [--sentences 300] [--rounds 3] [--json]

Terms are words of held-out pairs whose translation, found by alignment in the training text, is in the reference in
some form. An eighth of the translations, by their first three letters, is never hinted in training; only these are
terms. A term counts as obeyed if the output has a form of its translation (`holds_form`). Arms: without a glossary,
with forced search, with hints, and with hints and then forced search where a term is missing. BLEU without a
glossary is that of the first --pairs. For the speed, the same lines are translated in turn without a glossary, with
1,000 terms that they do not have, and with the terms of the pairs. Finished runs in --out are measured again.
"""

from __future__ import annotations

import argparse
import statistics
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from unittest import mock

from harness import Document, in_turn, main, option, settings, spread
from manyheads.data import augment_phrases
from manyheads.data.augment_phrases import MinedPhrases, mine_phrases
from manyheads.data.store import TextStore
from manyheads.evaluation.scores import score
from manyheads.inference.translation.glossary import Glossary, Term, holds_form
from manyheads.inference.translation.translator import Translator
from manyheads.tasks.translation import augmented_batches
from manyheads.tasks.translation.term_hints import Links, link_words
from material import SMALLEST, out, pairs_option, read_rows, train_recipe, write_pairs

MARKS = ",.!?;:\"'"
ARMS = {"plain": "data.terms=0", "hinted": "data.terms=0.5"}


class Example(NamedTuple):
    """A held-out pair, and a word of its source with its translation."""

    source: str
    reference: str
    term: Term


def is_held_out(translation: str) -> bool:
    """Return whether a translation is never hinted: an eighth of all, by the letters that its forms share."""
    return zlib.crc32(translation[:3].lower().encode()) % 8 == 0


def mine_hinted(sources: Iterable[str], targets: Iterable[str], languages: tuple[str, str]) -> MinedPhrases:
    """Mine the words of a training, without links to translations that are held out."""
    mined = mine_phrases([*sources], [*targets], languages)
    return replace(mined, links=[pair for pair in mined.links if not is_held_out(pair.target)])


def find_examples(pairs: Iterable[tuple[str, str]], links: Links, count: int) -> list[Example]:
    """Return pairs with a word that is linked to one word of the reference; a word has the same term everywhere."""
    examples: list[Example] = []
    terms: dict[str, Term] = {}
    for source, reference in pairs:
        translated = [word.strip(MARKS).lower() for word in reference.split()]
        for word in (word.strip(MARKS) for word in source.split()):
            found = [base for form, (_, base) in links.get(word.lower(), {}).items() if translated.count(form) == 1]
            if len(found) == 1 and terms.setdefault(word, Term(word, found[0], "")).target == found[0]:
                examples.append(Example(source, reference, terms[word]))
                break
    return examples[:count]


def translate(translator: Translator, lines: Sequence[str]) -> list[str]:
    return [result.translation for result in translator.translate(lines)]


def measure_obedience(arms: dict[str, Translator], examples: Sequence[Example]) -> Document:
    """Translate the examples with each arm; return the share with their term, and BLEU."""
    rows = {}
    for name, arm in arms.items():
        outputs = translate(arm, [example.source for example in examples])
        found = [holds_form(output, example.term.target) for example, output in zip(examples, outputs, strict=True)]
        scores = score(outputs, [example.reference for example in examples])
        rows[name] = {"obeyed": statistics.mean(found), "BLEU": scores.bleu, "signature": scores.signature["bleu"]}
    return rows


def measure_speed(arms: dict[str, Translator], lines: Sequence[str], rounds: int) -> Document:
    """Return the seconds of the processor that each arm takes, and how many times the first."""
    sides = {name: partial(arm.translate, lines) for name, arm in arms.items()}
    seconds = in_turn(sides, rounds, clock=time.process_time)
    base = statistics.median(next(iter(seconds.values())))
    return {
        name: {**spread(values), "times the first": statistics.median(values) / base}
        for name, values in seconds.items()
    }


def absent_terms(links: Links, lines: Sequence[str]) -> list[Term]:
    """Return 1,000 terms that no line has, with no ending either."""
    terms = [Term(source, next(iter(found)), "") for source, found in links.items()]
    while used := {place.term for line in lines for place in Glossary(terms).find(line)}:
        terms = [term for term in terms if term not in used]
    return [*terms, *(Term(f"absent{number}", "word", "") for number in range(1000 - len(terms)))][:1000]


def measure(arguments: argparse.Namespace) -> Document:
    runs = {arm: arguments.out / arm for arm in ARMS}
    if arguments.tiny:
        augment_phrases._MOST_FREQUENT = 1  # of the few words, each is more frequent
    with mock.patch.object(augmented_batches, "mine_phrases", mine_hinted):
        for arm, run in runs.items():
            train_recipe(arguments.recipe, [*arguments.overrides, ARMS[arm]], run)
    plain, hinted = (Translator.load(run, device="cpu") for run in runs.values())
    links = link_words(mine_phrases(*TextStore(runs["hinted"] / "cache" / "text").sides()).links)
    never = {
        word: {form: texts for form, texts in found.items() if is_held_out(form) or arguments.tiny}
        for word, found in links.items()
    }
    pairs = [read_rows(both) for both in arguments.pairs]
    examples = find_examples((pair for part in pairs for pair in part), never, arguments.sentences)
    own = Glossary({example.term.source: example.term for example in examples}.values())
    named = hinted.with_glossary(own)
    alone = Translator.load(runs["hinted"], engine="native").with_glossary(own)  # no constrained search
    lines = [example.source for example in examples]
    absent = Glossary(absent_terms(links, lines))
    sources, references = zip(*pairs[0], strict=True)
    return {
        "rows": {
            "sentences": len(examples),
            "terms": len(own.terms),
            "BLEU without a glossary": {
                arm: score(translate(translator, sources), references).bleu
                for arm, translator in (("plain", plain), ("hinted", hinted))
            },
            "glossary": measure_obedience(
                {
                    "plain, no glossary": plain,
                    "plain, forced": plain.with_glossary(own),
                    "hinted, no glossary": hinted,
                    "hinted, hints alone": alone,
                    "hinted, then forced": named,
                },
                examples,
            ),
            "speed": measure_speed(
                {
                    "none": hinted,
                    "1,000 terms that no line has": hinted.with_glossary(absent),
                    "a term or more in each line": named,
                },
                lines,
                arguments.rounds,
            ),
        }
    }


OPTIONS = {
    "recipe": option(str, "recipe or TOML file", tiny="multi30k-de-en", required=True),
    "--set": settings(lambda folder: [*SMALLEST, f"data.root={write_pairs(folder, valid='val')}"]),
    "--out": out("runs/terms"),
    "--pairs": pairs_option("train"),
    "--sentences": option(300, "sentences with a term", tiny=2),
    "--rounds": option(3, "measurements of the speed", tiny=1),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="share, BLEU, seconds of the processor")
