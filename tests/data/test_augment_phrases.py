"""Words and phrases are mined from a synthetic language in which every word has one translation."""

from __future__ import annotations

import random

import pytest

from manyheads.data import augment_phrases as module
from manyheads.data.augment_phrases import mine_phrases

NOUNS = {"Hund": "dog", "Katze": "cat", "Mann": "man", "Frau": "woman", "Vogel": "bird", "Pferd": "horse"}
VERBS = {"sieht": "sees", "hört": "hears", "malt": "paints", "sucht": "seeks"}
ARTICLES = {"der": "the", "kein": "no", "ein": "a"}
ENDS = {"heute": "today", "gestern": "yesterday", "oft": "often"}


def make_sentences(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Return random source sentences, whose verb is last, and their translations."""
    rng = random.Random(seed)
    sources, targets = [], []
    for _ in range(count):
        noun, verb, end, article, other = (rng.choice([*words]) for words in (NOUNS, VERBS, ENDS, ARTICLES, NOUNS))
        sources.append(f"{end.title()} {noun} {article} {other} {verb}.")
        targets.append(f"{NOUNS[noun]} {VERBS[verb]} {ARTICLES[article]} {NOUNS[other]} {ENDS[end]}.")
    return sources, targets


def test_every_word_is_found_with_its_translation_and_usual_spelling() -> None:
    found = {pair.source: pair.target for pair in mine_phrases(*make_sentences(300)).words}
    expected = {**NOUNS, **VERBS, **ARTICLES, **ENDS}
    assert {word: expected.get(word) for word in found} == found
    assert found.keys() >= {*NOUNS, *VERBS, *ARTICLES}


def test_phrases_are_runs_of_words_that_are_translated_together() -> None:
    found = {pair.source: pair.target for pair in mine_phrases(*make_sentences(300)).phrases}
    assert found["der Hund"] == "the dog"
    assert "Hund sieht" not in found, "another word stands between their translations"
    assert not any("." in source + target for source, target in found.items()), "marks are no part of a phrase"


def test_mined_words_depend_on_the_texts_alone_and_leave_out_rare_words() -> None:
    sources, targets = make_sentences(200)
    sources, targets = [*sources, "Ein Quastenflosser."], [*targets, "A coelacanth."]
    first = mine_phrases(sources, targets)
    assert first == mine_phrases(list(sources), list(targets))
    assert "Quastenflosser" not in {pair.source for pair in first.words}


def test_the_words_of_turkish_are_written_in_its_small_letters() -> None:
    sources, targets = make_sentences(300)
    sources = [f"Isı {source}" for source in sources[:150]] + sources[150:]
    targets = [f"Heat {target}" for target in targets[:150]] + targets[150:]
    mined = mine_phrases(sources, targets, ("tr", "en"))
    assert "ısı" in {pair.source for pair in [*mined.words, *mined.links]}


def test_a_large_corpus_is_read_evenly_spaced_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    sources, targets = make_sentences(1000)
    monkeypatch.setattr(module, "_MOST_LINKS", 6 * 6 * 250)
    rows = module._sample_rows(sources, targets)
    assert 200 <= len(rows) <= 250
    assert rows[-1] > 950
    assert {pair.source for pair in mine_phrases(sources, targets).words} >= {*NOUNS}


def test_texts_without_words_give_no_mined_words() -> None:
    assert mine_phrases([], []).words == []
    assert mine_phrases(["", "1 2 3"], ["", "1 2 3"]).words == []


def test_a_word_without_a_translation_gets_none() -> None:
    """Only links that both directions choose count."""
    sources, targets = make_sentences(300)
    rng = random.Random(5)
    sources = [f"{source[:-1]} doch." if rng.random() < 0.5 else source for source in sources]
    found = {pair.source: pair.target for pair in mine_phrases(sources, targets).words}
    assert "doch" not in found
    assert found.keys() >= {*NOUNS, *VERBS}
