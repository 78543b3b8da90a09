"""The generated corpora: held-out combinations, one translation each, and correct grammar."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from functools import cache
from typing import Literal

import pytest
from tools.corpora.choice import Rng, Sentence, Weighted
from tools.corpora.german import count as german_count
from tools.corpora.german import words as german
from tools.corpora.german.clauses import TIMES as GERMAN_TIMES
from tools.corpora.german.grammar import german_grammar
from tools.corpora.korean import count as korean_count
from tools.corpora.korean import words as korean
from tools.corpora.korean.clauses import TIMES as KOREAN_TIMES
from tools.corpora.korean.grammar import korean_grammar
from tools.corpora.splits import GRAMMARS, corpus_text, count_sentences, sentences

from manyheads.data.builtin import load_texts

SplitName = Literal["train", "valid", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "valid", "test")
HELD_OUT: tuple[SplitName, ...] = ("valid", "test")
NAMES = ("de-en", "ko-en")


@cache
def all_sentences(name: str) -> tuple[Sentence, ...]:
    return tuple(sentence for split in SPLITS for sentence in sentences(name, split))


@cache
def fresh(name: str) -> tuple[Sentence, ...]:
    """Return new sentences beside those of the splits."""
    grammar, rng = GRAMMARS[name](), Rng(271828)
    return tuple(grammar.draw(rng) for _ in range(6000))


def words(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text)


def lowered(text: str) -> list[str]:
    """Return the words of a text, the first one in lower case."""
    return words(text[0].lower() + text[1:])


# --- the files ---


@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_the_package_are_what_the_grammars_generate(name: str) -> None:
    """Compare the files; after a change of a grammar, run `python -m tools.corpora` and measure the demo again."""
    shipped = [f"{foreign}\t{english}\n" for pairs in load_texts(name).values() for foreign, english in pairs]
    assert "".join(shipped) == corpus_text(name)


def test_weighted_choices_have_frequencies_proportional_to_their_weights() -> None:
    rng, options = Rng(3), Weighted({"a": 1, "b": 5, "c": 2})
    found = Counter(rng.pick_weighted(options) for _ in range(8000))
    assert {key: round(count / 1000) for key, count in found.items()} == {"a": 1, "b": 5, "c": 2}


# --- held-out combinations ---


@pytest.mark.parametrize("name", NAMES)
def test_no_sentence_occurs_twice_or_in_two_splits_on_either_side(name: str) -> None:
    for side in ("foreign", "english"):
        texts = [getattr(sentence, side) for sentence in all_sentences(name)]
        assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("name", NAMES)
def test_every_held_out_sentence_has_a_combination_that_train_lacks(name: str) -> None:
    seen = {split: {c for s in sentences(name, split) for c in s.combinations} for split in SPLITS}
    for split in HELD_OUT:
        others = set[str]().union(*(seen[other] for other in SPLITS if other != split))
        assert all(set(sentence.combinations) - others for sentence in sentences(name, split))


@pytest.mark.parametrize("name", NAMES)
def test_held_out_adjectives_and_nouns_are_never_adjacent_in_the_training_text(name: str) -> None:
    """Search the English text itself, independently of the combinations that the grammar records."""
    adjectives = {
        "de-en": {key: word.english for key, word in german.load_lexicon().adjectives.items()},
        "ko-en": {key: key for key in korean.load_lexicon().adjectives},
    }[name]
    lexicon = german.load_lexicon().nouns if name == "de-en" else korean.load_lexicon().nouns
    nouns = {key: {word.english, getattr(word, "english_plural", word.english)} for key, word in lexicon.items()}
    train = " | ".join(re.sub("[.,?]", " |", s.english.lower()) for s in sentences(name, "train"))
    trained = {c for sentence in sentences(name, "train") for c in sentence.combinations}
    checked = 0
    for split in HELD_OUT:
        for combination in {c for s in sentences(name, split) for c in s.combinations} - trained:
            adjective, _, noun = combination.partition("+")
            if adjective in adjectives and noun in nouns:
                checked += 1
                for form in nouns[noun] - {""}:
                    assert f" {adjectives[adjective]} {form} " not in train, combination
    assert checked > 50


@pytest.mark.parametrize("name", NAMES)
def test_every_held_out_english_word_occurs_in_the_training_text(name: str) -> None:
    known = Counter(word for s in sentences(name, "train") for word in lowered(s.english))
    for split in HELD_OUT:
        for sentence in sentences(name, split):
            for word in lowered(sentence.english):
                assert known[word] >= 3 or known[word.capitalize()] >= 3, (word, sentence.english)


# --- unique translations ---


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("direction", ["from English", "into English"])
def test_every_sentence_has_one_translation(name: str, direction: str) -> None:
    translations = defaultdict(set)
    for sentence in (*all_sentences(name), *fresh(name)):
        pair = (sentence.foreign, sentence.english)
        source, target = pair if direction == "into English" else pair[::-1]
        translations[source].add(target)
    assert [source for source, targets in translations.items() if len(targets) > 1] == []


# --- sizes ---


@pytest.mark.parametrize("name", NAMES)
def test_train_has_at_least_three_hundred_words_a_language(name: str) -> None:
    for side in ("foreign", "english"):
        count = Counter(word for s in sentences(name, "train") for word in lowered(getattr(s, side)))
        assert sum(times >= 30 for times in count.values()) >= 300


def test_every_word_of_the_lexicons_occurs_often_enough_in_train_to_be_learned() -> None:
    text = Counter(word for s in sentences("de-en", "train") for word in words(s.foreign))
    lexicon = german.load_lexicon()
    for noun in lexicon.nouns.values():
        forms = {noun.singular, noun.plural, f"{noun.plural}n", f"{noun.singular}s"} - {"", "n"}
        assert sum(text[form] for form in forms) >= 30, noun.singular
    for verb in lexicon.verbs.values():
        forms = {verb.participle, verb.infinitive} | (set() if verb.prefix else {verb.first, verb.third})
        assert sum(text[form] for form in forms) >= 30, verb.infinitive
    korean_text = [word for s in sentences("ko-en", "train") for word in words(s.foreign)]
    stems = Counter(word[:end] for word in korean_text for end in range(1, len(word) + 1))
    for korean_noun in korean.load_lexicon().nouns:
        assert stems[korean_noun] >= 30, korean_noun
    for name, predicate in korean.load_lexicon().verbs.items():
        forms = (predicate.past_stem(), f"{predicate.infinitive}요", predicate.stem)
        assert sum(stems[form.split()[-1]] for form in forms) >= 20, name


@pytest.mark.parametrize("name", NAMES)
def test_the_grammar_generates_at_least_ten_million_sentences(name: str) -> None:
    assert count_sentences(name) >= 10_000_000


def test_all_counted_german_phrases_can_be_generated() -> None:
    """Check the sets of phrases whose sizes are multiplied: the code for sentences generates each phrase."""
    sampler, rng = german_grammar().sampler, Rng(11)
    use = next(use for use in sampler.object_uses.items if use.verb.infinitive == "mieten")
    subjects = {sampler.subject(rng, kind).nominative for kind in ("name", "person", "kin") for _ in range(60_000)}
    assert german_count.subject_texts(sampler) <= subjects
    clause, _ = sampler.start_clause(rng, use, "p")
    assert GERMAN_TIMES.past_texts("q" in use.modes) <= {
        sampler.time(rng, "p", False).foreign for _ in range(50_000)
    }
    things = {sampler.any_phrase(rng, rng.pick(use.nouns), clause.subject).accusative for _ in range(100_000)}
    assert german_count.object_texts(use) <= things


def test_all_counted_korean_phrases_can_be_generated() -> None:
    sampler, rng = korean_grammar().sampler, Rng(11)
    use = next(use for use in sampler.object_uses.items if use.name == "make")
    kinds = [Weighted({kind: 1}) for kind in ("name", "person", "kin", "parent", "senior")]
    subjects = {sampler.subject(rng, kind).text for kind in kinds for _ in range(20_000)}
    counted = {text[:-1] for text in korean_count.subject_texts(sampler)}
    assert counted <= subjects
    clause = sampler.object_clause(rng, "p", sampler.names[0])
    assert KOREAN_TIMES.past_texts("q" in use.modes) <= {
        sampler.time(rng, "p", False).foreign for _ in range(50_000)
    }
    things = {sampler.draw_object(rng, clause, "p", use).text for _ in range(40_000)}
    assert {text[:-1] for text in korean_count.object_texts(use)} <= things


# --- the text ---


@pytest.mark.parametrize("name", NAMES)
def test_the_text_is_clean(name: str) -> None:
    for sentence in (*all_sentences(name), *fresh(name)):
        for text in (sentence.foreign, sentence.english):
            assert unicodedata.is_normalized("NFC", text)
            assert re.fullmatch(r"\S+(?: \S+)*[.?]", text), text
            assert not re.search(r"[.,?] ?[.,?]|None|\{|\}", text), text
            assert 2 <= len(text.split()) <= 26
        assert sentence.english[0].isupper()
        assert (sentence.foreign[-1] == "?") == (sentence.english[-1] == "?")
