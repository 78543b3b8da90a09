"""Count a lower bound of the number of German-English sentences."""

from __future__ import annotations

from tools.corpora.german.clause_sampler import ClauseSampler, Use
from tools.corpora.german.clauses import TIMES
from tools.corpora.german.words import Noun, noun_phrase
from tools.corpora.grammar import count_statements

__all__ = ["count_sentences", "object_texts", "subject_texts"]


def singular_and_plural(noun: Noun) -> list[tuple[str, bool]]:
    """Return the determiners of a noun, each with whether it is plural; without numbers, his, her and no."""
    return [(determiner, False) for determiner in noun.determiners] + [
        (determiner, True) for determiner in noun.plural_determiners
    ]


def subject_texts(sampler: ClauseSampler) -> set[str]:
    """Return the third-person subjects, names and persons with and without an adjective, in the nominative."""
    people = sampler.people["person"] + sampler.people["kin"]
    nouns = {
        noun_phrase(noun.singular, determiner, adjective, plural).nominative
        for noun in people
        for determiner, plural in singular_and_plural(noun)
        for adjective in ("", *noun.adjectives)
    }
    return nouns | {name.nominative for name in sampler.names}


def object_texts(use: Use) -> set[str]:
    """Return the objects of a verb, with and without an adjective, in the accusative."""
    return {
        noun_phrase(noun.singular, determiner, adjective, plural).accusative
        for noun in use.nouns
        for determiner, plural in singular_and_plural(noun)
        for adjective in ("", *noun.adjectives)
    }


def count_sentences(sampler: ClauseSampler) -> int:
    """Count the statements "SUBJECT hat TIME OBJECT PARTICIPLE" of the verbs with an object: a lower bound."""
    statements = (
        (use.verb.infinitive, object_texts(use), len(TIMES.past_texts("q" in use.modes)))
        for use in sampler.object_uses.items
        if use.agent == "human" and "p" in use.modes
    )
    return count_statements(len(subject_texts(sampler)), statements)
