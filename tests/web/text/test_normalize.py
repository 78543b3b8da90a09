from __future__ import annotations

from tests.web.text.browser import Browser, first_difference, quick_texts

from bitext.typography import MARKS
from manyheads.text.interface import lower
from manyheads.text.normalize import normalize, normalize_target, source_form, unify


def test_texts_are_normalised_and_lower_cased_as_by_python(browser: Browser) -> None:
    marked = [f"Ｗ\u00ad{text[:40]}！\u200b１２，３\u00a0?\u202fﬁ\u200e ｶﾞ𝐀" for text in quick_texts()]
    texts = [*quick_texts(), *marked]
    found = browser.call("normalized", texts, MARKS)
    functions = (normalize, unify, lower, normalize_target, source_form)
    expected = [[function(text) for function in functions] for text in texts]
    assert first_difference(texts, expected, found) == ""
