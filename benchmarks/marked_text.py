"""Score a translator on its test set as it is, with soft hyphens in its words, and in full-width letters.

    python benchmarks/marked_text.py RUN [--lines 1000] [--json]

Each text is translated twice: without the normal form of sources, as by runs of earlier versions, and with it.
`hyphens` has U+00AD in the middle of every word of more than five letters, as text of web pages; `marks` a mark of
direction, U+200B or a word joiner in every third word; `wide` full-width letters, digits and stops in every fourth
word; `ligatures` ﬁ, ﬂ and ﬀ wherever they can be. Figures are sacreBLEU with the search of the run.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable

from harness import Document, main, option
from manyheads.data.training_text import available_pairs, with_normal_form
from manyheads.evaluation.scores import metrics
from manyheads.inference.translation.translator import Translator
from manyheads.text.normalize import NORMAL_FORM
from material import RUN

WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
LIGATURES = {"ffi": "ﬃ", "ffl": "ﬄ", "ff": "ﬀ", "fi": "ﬁ", "fl": "ﬂ"}


def in_words(change: Callable[[str], str], every: int = 1) -> Callable[[str], str]:
    def change_text(text: str) -> str:
        return " ".join(word if at % every else change(word) for at, word in enumerate(text.split(" ")))

    return change_text


def with_ligatures(text: str) -> str:
    for letters, ligature in LIGATURES.items():
        text = text.replace(letters, ligature)
    return text


def cut(word: str, mark: str) -> str:
    middle = len(word) // 2
    return f"{word[:middle]}{mark}{word[middle:]}"


def measure(arguments: argparse.Namespace) -> Document:
    """Score each kind of text without the normal form of sources and with it."""
    marks = itertools.cycle("\u200e\u200b\u2060")
    texts: dict[str, Callable[[str], str]] = {
        "clean": str,
        "hyphens": in_words(lambda word: cut(word, "\u00ad") if len(word) > 5 else word),
        "marks": in_words(lambda word: cut(word, next(marks)), every=3),
        "wide": in_words(lambda word: word.translate(WIDE), every=4),
        "ligatures": with_ligatures,
    }
    translator = Translator.load(arguments.run, device="cpu")
    pairs = available_pairs(translator.config, "test", arguments.lines)
    references = [pair.target for pair in pairs]
    bleu = metrics("13a")["bleu"]
    before, after = translator.copy(), translator.copy()
    for own, form in ((before, 0), (after, NORMAL_FORM)):
        own.tokenizers = translator.tokenizers.with_normal_forms(with_normal_form(translator.config, form))
    rows: dict[str, dict[str, float]] = {}
    for name, change in texts.items():
        sources = [change(pair.source) for pair in pairs]
        rows[name] = {}
        for side, own in (("before", before), ("after", after)):
            outputs = [result.translation for result in own.translate(sources)]
            rows[name][side] = round(bleu.corpus_score(outputs, [references]).score, 2)
    return {"signature": str(bleu.get_signature()), "lines": len(pairs), "rows": rows}


OPTIONS = {"run": RUN, "--lines": option(1000, "lines of its test set", tiny=10)}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="BLEU", packages=["sacrebleu"])
