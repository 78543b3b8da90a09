from __future__ import annotations

import random
from functools import partial

import pytest
from tests.web.text.browser import (
    Browser,
    first_difference,
    quick_texts,
    stable_characters,
)

from bitext.languages import capitalize, lower, upper
from bitext.unicode import known, on_known

ALLOWED = 20  # characters whose properties a newer version of Unicode changed


def test_characters_have_the_unicode_properties_of_python() -> None:
    stable, different = stable_characters(step=1)
    assert len(stable) > 140_000
    changed = {name: characters for name, characters in different.items() if characters}
    assert set(changed) <= {"lower case", "upper", "capitalize"}
    assert all(len(characters) <= ALLOWED for characters in changed.values()), changed


def test_stripping_splitting_and_capitalizing_are_those_of_python(browser: Browser) -> None:
    texts = quick_texts()
    found = browser.call("stripped", texts)
    assert first_difference(texts, [[t.strip(), t.split(), t.capitalize()] for t in texts], found) == ""


@pytest.mark.parametrize("code", ["tr", "az-Cyrl", "crh", "lt", "el", "de", ""])
def test_capitals_and_small_letters_are_those_of_the_language_as_in_python(browser: Browser, code: str) -> None:
    rng = random.Random(1)
    letters = "iIıİjJįĮÌíĨaΣσß\u0307\u0323\u0301 "
    texts = ["".join(rng.choices(letters, k=6)) for _ in range(2_000)]
    found = browser.call("cased", texts, code)
    assert (
        first_difference(texts, [[lower(t, code), upper(t, code), capitalize(t, code)] for t in texts], found) == ""
    )


@pytest.mark.parametrize("steps", [-9, -2, -1, 0, 1, 2, 9])
def test_an_offset_moves_by_whole_characters(browser: Browser, steps: int) -> None:
    text = "a😀b👍c"
    units = [len(text[:index].encode("utf-16-le")) // 2 for index in range(len(text) + 1)]
    for index, unit in enumerate(units):
        moved = units[min(len(text), max(0, index + steps))]
        assert browser.call("moved", text, unit, steps) == [moved, text[max(0, index - 1) : index]]


def test_characters_that_another_version_of_unicode_knows_are_those_of_python(browser: Browser) -> None:
    texts = [
        "".join(map(chr, range(start, start + 0x400)))
        for start in (*range(0, 0xD800, 0x400), *range(0xE000, 0x110000, 0x400))
    ]
    found = browser.call("known", texts)
    expected = [
        known(text).replace("\U000f0000", "\ue000") for text in texts
    ]  # a symbol of private use, of two units
    assert first_difference(texts, expected, found) == ""


def test_case_changes_beside_newer_characters_are_those_of_python(browser: Browser) -> None:
    rng, new = random.Random(1), [chr(code) for code in range(0x10D4A, 0x10D90)] + ["\u1c89", "\ua7cb", "\uffff"]
    texts = ["".join(rng.choices([*new, *"aßÉσΣ ǆ"], k=12)) for _ in range(50)]
    functions = partial(on_known, str.upper), partial(on_known, str.capitalize)
    found = browser.call("changed", texts)
    assert first_difference(texts, [[function(text) for function in functions] for text in texts], found) == ""
