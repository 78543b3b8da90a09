"""Count a lower bound of the number of Korean-English sentences."""

from __future__ import annotations

from tools.corpora.grammar import count_statements
from tools.corpora.korean.clause_sampler import ClauseSampler, Use
from tools.corpora.korean.clauses import TIMES
from tools.corpora.korean.hangul import particle
from tools.corpora.korean.words import Noun, noun_phrase

__all__ = ["count_sentences", "object_texts", "subject_texts"]


def phrase_texts(nouns: tuple[Noun, ...], kind: str) -> set[str]:
    """Return the nouns with all their determiners, except 의, and all their adjectives, with a particle."""
    return {
        particle(noun_phrase(noun.korean, determiner, adjective).text, kind)
        for noun in nouns
        for determiner in noun.determiners
        if determiner != "의"
        for adjective in ("", *noun.adjectives)
    }


def subject_texts(sampler: ClauseSampler) -> set[str]:
    """Return the topics in the third person singular."""
    people = sum(sampler.people.values(), ())
    return phrase_texts(people, "topic") | {particle(name.text, "topic") for name in sampler.names}


def object_texts(use: Use) -> set[str]:
    """Return the objects of a verb without a number."""
    return phrase_texts(use.nouns, "object")


def count_sentences(sampler: ClauseSampler) -> int:
    """Count the statements "TOPIC TIME OBJECT VERB" in the past, without counted objects: a lower bound."""
    statements = (
        (use.verb.past_stem(), object_texts(use), len(TIMES.past_texts("q" in use.modes)))
        for use in sampler.object_uses.items
        if "p" in use.modes
    )
    return count_statements(len(subject_texts(sampler)), statements)
