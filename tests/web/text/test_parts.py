from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from tests.inference.translation.test_parts import LETTERLESS, SPACE, WORDS
from tests.tasks.documents import documents
from tests.web.text.browser import LAYOUT, LITERALS, Browser, first_difference, quick_texts

from manyheads.config.schema import TokenizerConfig
from manyheads.inference.translation.assembly import word_numbers
from manyheads.inference.translation.literals import put_placeholders
from manyheads.inference.translation.parts import Line, Splitter
from manyheads.runs.challenge import _inside_cases
from manyheads.search.options import Split
from manyheads.text.characters import ByteTokenizer
from manyheads.text.reserved import PLACEHOLDERS
from manyheads.text.training import train_tokenizer
from manyheads.web.tokenizer import describe_tokenizer

TOKENIZER = ByteTokenizer(lowercase=False)
OPTIONS = [
    {"language": language, "split": split, "trained_length": trained, "longest": longest, "copy_literals": copied,
     "lower_capitals": lowered}
    for (language, split), (trained, longest), copied, lowered in [*product(
        [("de", "auto"), ("en", "sentences"), ("ko", "none")], [(40, 100), (100, 7)], [False, True], [False, True]
    )][::3]  # each combination of the last three, each language two or three times
]  # fmt: skip


@pytest.fixture(scope="module")
def browser(browser: Browser) -> Browser:
    browser.call("load", "bytes", describe_tokenizer(TOKENIZER))
    return browser


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
    """Return a line without literals inside of a part as the JavaScript describes it."""
    return {
        "text": line.text,
        "spans": [list(span) for span in line.spans],
        "rows": line.parts,
        "cutSentences": line.cut_sentences,
        "capitals": capitals_of(line),
        "target": line.target,
    }


def capitals_of(line: Line) -> list[bool]:
    """Return for each part whether it is in capitals."""
    return list(line.capitals or [False] * len(line.parts))


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


@pytest.mark.parametrize("options", OPTIONS[::3], ids=lambda options: "-".join(map(str, options.values())))
def test_letters_newer_than_a_version_of_unicode_are_treated_as_in_python(
    browser: Browser, options: dict[str, Any]
) -> None:
    codes = [
        *range(0x10D40, 0x10D90),
        *range(0x1FA70, 0x1FAFF),
        *range(0x2EBF0, 0x2EBFA),
        0x1C89,
        0xA7CB,
        0x1E5D0,
        0xC5C,
    ]
    rng = random.Random(3)
    words = [*map(chr, codes), " ", ". ", "! ", "{x}", "https://a.b/c", "AB", "é", "Ως"]
    texts = ["".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(600)]
    splitter = Splitter(TOKENIZER, **options)
    lines = splitter.lines(texts)
    found = browser.call("lines", in_javascript(options), texts)
    assert first_difference(texts, [as_json(line) for line in lines], found) == ""
    outputs = [[chr(rng.choice(codes)), "aß\u1c8a", "."][: rng.randint(1, 3)] for _ in texts]
    joined = [
        line.join([row[part % len(row)] for part in range(len(line.parts))])
        for line, row in zip(lines, outputs, strict=True)
    ]
    assert first_difference(texts, joined, browser.call("joined", in_javascript(options), texts, outputs)) == ""


@pytest.mark.parametrize(("split", "lowered"), [("auto", False), ("sentences", True)])
def test_literals_become_placeholders_and_come_back_as_in_python(
    browser: Browser, split: Split, lowered: bool
) -> None:
    rng, literals = (
        random.Random(2),
        ["{name}", "%s", "<b>x</b>", "www.x.org", "&amp;", "*x*", "오늘{n}은", "{b}x{/b}", "\\emph{x}", "[X7X]"],
    )
    words = [*LETTERLESS, *WORDS, *literals, "(", "„", ".", "X"]
    texts = [rng.choice(("", " ")).join(rng.choices([*words, " "], k=9)) for _ in range(400)]
    texts += [*(text[:300] for text in quick_texts()), *documents()]
    texts += [case.source for language in ("de", "ko") for case in _inside_cases(language, texts)]
    characters = len(set("".join(quick_texts())))  # of the version of Unicode that the running Python knows
    config = TokenizerConfig(kind="bpe", vocab_size=characters + 300, reserved=PLACEHOLDERS)
    tokenizer = train_tokenizer(config, quick_texts(), "de")
    browser.call("load", "placeholders", describe_tokenizer(tokenizer))
    splitter = Splitter(tokenizer, "de", split, 60, 100, copy_literals=True, lower_capitals=lowered)
    symbols = {tokenizer.reserved[symbol] for symbol in PLACEHOLDERS}
    expected = []
    for line in (put_placeholders(line, splitter) for line in splitter.lines(texts)):
        restored = []
        for part, sentence in line.placeholders.items():
            own = [token for token in line.parts[part] if token in symbols]
            output = [own.pop() if token in symbols else token for token in line.parts[part]]
            tokens = tokenizer.whole_characters(output, sentence.text)[0]
            numbers = word_numbers(tokenizer, output, sentence.text, sentence.restore)
            complete = sentence.is_complete(tokenizer, output)
            restored.append([part, complete, sentence.restore(tokenizer, tokens), numbers])
        expected.append([[list(span) for span in line.spans], line.parts, capitals_of(line), restored])
    assert sum(bool(row[3]) for row in expected) > 300
    options = {
        "tokenizer": "placeholders", "language": "de", "split": split, "trainedLength": 60, "longest": 100,
        "literals": LITERALS, "lowerCapitals": lowered,
    }  # fmt: skip
    assert first_difference(texts, expected, browser.call("placeholders", options, texts)) == ""


@pytest.mark.parametrize(("letters", "known"), [("0123456789+", False), ("0123456789+x", True)])
def test_a_tokenizer_of_numbers_knows_no_letters(browser: Browser, letters: str, known: bool) -> None:
    rng = random.Random(1)
    texts = ["".join(rng.choices(letters, k=20)) for _ in range(50)]
    for kind in ("characters", "bpe"):
        size = {} if kind == "characters" else {"vocab_size": 290}
        tokenizer = train_tokenizer(TokenizerConfig(kind=kind, **size), texts, "de")
        browser.call("load", kind, describe_tokenizer(tokenizer))
        assert browser.call("knowsLetters", kind) == tokenizer.knows_letters == known
