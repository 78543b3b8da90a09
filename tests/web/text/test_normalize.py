from __future__ import annotations

from tests.web.text.browser import first_difference, open_browser, quick_texts

from manyheads.text.interface import lower
from manyheads.text.normalize import normalize, unify


def test_texts_are_normalised_and_lower_cased_as_by_python() -> None:
    texts = quick_texts()
    with open_browser() as browser:
        found = browser.call("normalized", texts)
    assert first_difference(texts, [[normalize(t), unify(t), lower(t)] for t in texts], found) == ""
