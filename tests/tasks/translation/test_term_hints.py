"""Words of a source are replaced by their translation, which the target has, between reserved symbols."""

from __future__ import annotations

import re
from random import Random

from bitext.pairs import Pair
from manyheads.tasks.translation.term_hints import TermHints, link_words

PAIRS = {"Hund": "dog", "Hunde": "dogs", "kleine": "small", "Katze": "cat", "sieht": "sees", "Tier": "dog"}
LINKS = link_words(Pair(*pair, 1) for pair in [*PAIRS.items(), ("Ross", "horse"), ("Ross", "steed")])
SOURCE, TARGET = "Kleine Hunde: ein Auto sieht, ein Rad, die Katze.", "Small dogs: a car sees, a wheel, the cat."
HINT = re.compile(" \ufdd0([^\ufdd1]*)\ufdd1 ")


def hinted(source: str, target: str, seeds: int = 500) -> list[tuple[str, str]]:
    hints = TermHints(LINKS)
    return [hints.add(source, target, Random(seed)) for seed in range(seeds)]


def test_a_word_has_the_base_form_that_related_words_have() -> None:
    assert LINKS["hunde"] == {"dogs": ("dogs", "dog")}
    assert LINKS["tier"] == {"dog": ("dog", "dog")}
    assert LINKS["kleine"] == {"small": ("small", "small")}


def test_a_hint_replaces_a_word_or_neighbours_whose_translations_are_neighbours() -> None:
    shown = [HINT.sub(r"<\1>", source) for source, target in hinted(SOURCE, TARGET) if target == TARGET]
    assert {
        "Kleine<dog>: ein Auto sieht, ein Rad, die Katze.", "Kleine<dogs>: ein Auto sieht, ein Rad, die Katze.",
        "<small dogs>: ein Auto sieht, ein Rad, die<cat>.", "<small>Hunde: ein Auto<sees>, ein Rad, die<cat>.",
    } <= {text.replace("> ", ">").replace(" <", "<") for text in shown}  # fmt: skip
    assert {hint for source in shown for hint in re.findall("<(.*?)>", source)} == {
        "small", "dog", "dogs", "small dog", "small dogs", "sees", "cat",
    }  # fmt: skip


def test_a_target_word_is_another_one_only_where_the_hint_names_it() -> None:
    changed = [(source, target) for source, target in hinted(SOURCE, TARGET) if target != TARGET]
    words = {word for _, target in changed for word in re.findall(r"\w+", target)}
    assert {"Dogs", "smags"} <= words, "words that exist, and made-up ones; capitals stay"
    for source, target in changed:
        new = [word.lower() for word in re.findall(r"\w+", target) if word not in TARGET]
        assert set(new) <= {word.lower() for hint in HINT.findall(source) for word in hint.split()}


def test_a_pair_without_words_that_occur_once_on_both_sides_stays_as_it_is() -> None:
    for pair in (("Hund und Hund", "dog"), ("Hund", "dog and dog"), ("Katze", "hound"), ("Ross", "horse, steed")):
        assert hinted(*pair, 20) == [pair] * 20


def test_a_target_word_is_the_hint_of_one_source_word() -> None:
    assert {source.count("\ufdd0") for source, _ in hinted("Hund, Tier", "dog")} == {1}
