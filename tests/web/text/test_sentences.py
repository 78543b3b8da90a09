from __future__ import annotations

from itertools import product

import pytest
from tests.inference.translation.test_literals import COPIED, LONG_LINES, PROSE
from tests.web.text.browser import LITERALS, Browser, first_difference, quick_texts

from bitext.languages import normal_form
from manyheads.inference.translation.literals import spans_to_translate
from manyheads.inference.translation.parts import _sentence_case
from manyheads.text.sentences import sentence_spans


@pytest.mark.parametrize("language", ["", "en", "deu_Latn", "no", "ko"])
def test_sentence_spans_are_those_of_python(browser: Browser, language: str) -> None:
    letters = ["z. B. ", "u.", " a. ", "n. Chr. ", "d. h.", " Er", "I. ", "b\u3000A.", "1. a", " Éa. é. Ç. "]
    texts = [*quick_texts(), *map("".join, product(letters, repeat=3))]
    expected = [[[list(span) for span in sentence_spans(t, language)], _sentence_case(t, language)] for t in texts]
    found = browser.call("sentences", texts, normal_form(language))
    assert first_difference(texts, expected, found) == ""


NUMBERS = [
    "Ruf +49 (30) 1234-5678 an! Ab v7.1.17 (v2.0) geht es, äv1.2, 3+4567890 + C++, v8.",
    "äv1.2 v3",
    "1+1 v2.x",
]


def test_spans_of_literals_are_those_of_python(browser: Browser) -> None:
    texts = [
        *quick_texts(),
        *NUMBERS,
        *PROSE,
        *(f"Ein {text} ({text}), „{text}“\t{text}." for text in COPIED),
        *LONG_LINES[::3],
    ]
    found = browser.call("literals", LITERALS, texts)
    assert first_difference(texts, [[list(s) for s in spans_to_translate(t)] for t in texts], found) == ""


def test_a_long_text_takes_linear_time(browser: Browser) -> None:
    for text in ("a. " * 33_000, "." * 100_000, " " * 100_000, ") " * 50_000, "x" * 100_000, ", " * 50_000):
        expected = [[list(span) for span in sentence_spans(text)]]
        assert [row for row, _ in browser.call("sentences", [text], "")] == expected
