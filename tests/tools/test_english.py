"""The English of the corpora: articles, numbers, and forms of the verb."""

from __future__ import annotations

import re

import pytest
from tools.corpora import english
from tools.corpora.german import words as german
from tools.corpora.korean import words as korean
from tools.corpora.splits import sentences

PRONOUNS = "[Hh]e|[Ss]he|I|[Ww]e|[Tt]hey"
AUXILIARIES = {"did", "does", "do", "will", "can", "could", "must", "may", "would", "is", "are", "am"}
NAMES = ("de-en", "ko-en")


@pytest.mark.parametrize("name", NAMES)
def test_a_precedes_consonants_and_an_precedes_vowels(name: str) -> None:
    for sentence in sentences(name, "train"):
        for article, word in re.findall(r"\b([Aa]n?) (\w+)", sentence.english):
            assert (word[0].lower() in "aeiou") == (len(article) == 2), sentence.english


def test_english_numbers_and_ranks_are_spelt_out() -> None:
    numbers = {0: "zero", 13: "thirteen", 21: "twenty-one", 40: "forty", 300: "three hundred"}
    numbers |= {
        120: "one hundred and twenty",
        15_000: "fifteen thousand",
        350_000: "three hundred and fifty thousand",
    }
    assert {value: english.number(value) for value in numbers} == numbers
    ranks = {1: "first", 2: "second", 12: "twelfth", 20: "twentieth", 21: "twenty-first", 30: "thirtieth"}
    assert {value: english.ordinal(value) for value in ranks} == ranks


def test_verbs_agree_with_their_subject_and_follow_auxiliaries_in_the_base_form() -> None:
    verbs = [*german.load_lexicon().verbs.values(), *korean.load_lexicon().verbs.values()]
    third = {verb.english.third.split()[0] for verb in verbs}
    base = {verb.english.base.split()[0] for verb in verbs} - {"put", "read"}
    finite = third | {verb.english.past.split()[0] for verb in verbs} - base - {"put", "read"}
    for name in NAMES:
        for sentence in sentences(name, "train"):
            text = sentence.english
            for before, pronoun, form in re.findall(rf"(\w*) ?\b({PRONOUNS}) (\w+)", text):
                if before.lower() in AUXILIARIES:
                    continue
                if pronoun.lower() in ("he", "she"):
                    assert form not in base | {"are", "have", "do", "were", "am", "want"}, text
                else:
                    assert form not in third | {"is", "has", "does", "wants"}, text
            for form in re.findall(r"\b(?:will|can|cannot|must|may|could|to|do|did|does)(?: not)? (\w+)", text):
                assert form not in finite, text
