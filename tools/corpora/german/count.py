"""How many German-English sentences there are: a lower bound, counted."""

from __future__ import annotations

from tools.corpora.german.clauses import TIMES
from tools.corpora.german.drawing import Drawing, Use
from tools.corpora.german.words import Noun, noun_phrase
from tools.corpora.grammar import count_statements

__all__ = ["count_sentences", "object_texts", "subject_texts"]


def singular_and_plural(noun: Noun) -> list[tuple[str, bool]]:
    """The determiners of a noun, each with its number; counted phrases and his, her, no are left out."""
    return [(word, False) for word in noun.determiners] + [(word, True) for word in noun.plural_determiners]


def subject_texts(drawing: Drawing) -> set[str]:
    """Every subject in the third person: names, and persons with and without an adjective, in the nominative."""
    people = drawing.people["person"] + drawing.people["kin"]
    found = {
        noun_phrase(noun.singular, word, adjective, many).nominative
        for noun in people
        for word, many in singular_and_plural(noun)
        for adjective in ("", *noun.adjectives)
    }
    return found | {name.nominative for name in drawing.names}


def object_texts(use: Use) -> set[str]:
    """Every object of a verb, with and without an adjective, in the accusative."""
    return {
        noun_phrase(noun.singular, word, adjective, many).accusative
        for noun in use.nouns
        for word, many in singular_and_plural(noun)
        for adjective in ("", *noun.adjectives)
    }


def count_sentences(drawing: Drawing) -> int:
    """Count the statements "SUBJECT hat TIME OBJECT PARTICIPLE" of the verbs with an object: a lower bound."""
    statements = (
        (use.verb.infinitive, object_texts(use), len(TIMES.past_texts("q" in use.modes)))
        for use in drawing.object_uses.items
        if use.who == "human" and "p" in use.modes
    )
    return count_statements(len(subject_texts(drawing)), statements)
