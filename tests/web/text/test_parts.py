from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from typing import Any

import pytest
from tests.tasks.documents import documents
from tests.tasks.test_parts import LETTERLESS, SPACE, WORDS
from tests.web.text.browser import LAYOUT, LITERALS, Browser, first_difference, open_browser, quick_texts

from manyheads.config.schema import TokenizerConfig
from manyheads.interop.html.tokenizer import describe_tokenizer
from manyheads.tasks.parts import Line, Splitter
from manyheads.text.characters import ByteTokenizer
from manyheads.text.tokenizer import train_tokenizer

TOKENIZER = ByteTokenizer(lowercase=False)
OPTIONS = [
    {"language": language, "split": split, "trained_length": trained, "longest": longest, "copy_literals": copied,
     "lower_capitals": lowered}
    for (language, split), (trained, longest), copied, lowered in [*product(
        [("de", "auto"), ("en", "sentences"), ("ko", "none")], [(40, 100), (100, 7)], [False, True], [False, True]
    )][::3]  # each combination of the last three, each language two or three times
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        opened.call("load", "bytes", describe_tokenizer(TOKENIZER))
        yield opened


def in_javascript(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with their names in JavaScript."""
    names = {
        "trained_length": "trainedLength", "lower_capitals": "lowerCapitals"
    }  # fmt: skip
    return {
        "tokenizer": "bytes", **{names.get(name, name): value for name, value in options.items()},
        "literals": LITERALS if options["copy_literals"] else LAYOUT,
    }  # fmt: skip


def as_json(line: Line) -> dict[str, Any]:
    fields = asdict(line)
    fields["cutSentences"] = fields.pop("cut_sentences")
    return {**fields, "spans": [list(span) for span in line.spans], "capitals": list(line.capitals)}


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(map(str, options.values())))
def test_lines_have_the_parts_and_joined_outputs_of_python(browser: Browser, options: dict[str, Any]) -> None:
    rng = random.Random(1)
    layouts = ["".join(rng.choices([*LETTERLESS, *SPACE, *SPACE, *WORDS], k=9)) for _ in range(80)]
    texts = [*(text[:300] for text in quick_texts()), *layouts, *documents()]
    splitter = Splitter(TOKENIZER, **options)
    units = [[list(span) for span in splitter.units(text)] for text in texts]
    assert first_difference(texts, units, browser.call("units", in_javascript(options), texts)) == ""
    lines = splitter.lines(texts)
    found = browser.call("lines", in_javascript(options), texts)
    assert first_difference(texts, [as_json(line) for line in lines], found) == ""
    outputs = [["Straße ﬁn.", "", "日本", "한국어 ", "Σας"][index % 5 :] or [""] for index in range(len(texts))]
    joined = [
        line.join([row[part % len(row)] for part in range(len(line.parts))])
        for line, row in zip(lines, outputs, strict=True)
    ]
    assert first_difference(texts, joined, browser.call("joined", in_javascript(options), texts, outputs)) == ""


@pytest.mark.parametrize(("letters", "known"), [("0123456789+", False), ("0123456789+x", True)])
def test_a_tokenizer_of_numbers_knows_no_letters(browser: Browser, letters: str, known: bool) -> None:
    rng = random.Random(1)
    texts = ["".join(rng.choices(letters, k=20)) for _ in range(50)]
    for kind in ("characters", "bpe"):
        size = {} if kind == "characters" else {"vocab_size": 290}
        tokenizer = train_tokenizer(TokenizerConfig(kind=kind, **size), texts, "de")
        browser.call("load", kind, describe_tokenizer(tokenizer))
        assert browser.call("knowsLetters", kind) == tokenizer.knows_letters == known
