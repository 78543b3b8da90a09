"""How many German-English sentences there are: a lower bound, counted."""

from __future__ import annotations

from tools.corpora.german.clauses import times
from tools.corpora.german.drawing import Drawing, Use
from tools.corpora.german.words import Noun, noun_phrase

__all__ = ["count_statements", "object_texts", "subject_texts", "time_texts"]


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


def time_texts(use: Use) -> set[str]:
    """Every time of the past that goes with a verb."""
    return {time.foreign for group in times("lately" if "q" in use.modes else "past").items for time in group}


def count_statements(drawing: Drawing) -> int:
    """The statements "SUBJECT hat TIME OBJECT PARTICIPLE" of the verbs with an object.

    Each part is counted as its set of different texts, and each choice of parts is a sentence that the grammar
    can make. Pronouns, other tenses and word orders, negations, questions and all other kinds of sentence are
    left out, so this is a lower bound.
    """
    subjects = len(subject_texts(drawing))
    objects: dict[str, set[str]] = {}
    whens: dict[str, int] = {}
    for use in drawing.object_uses.items:
        if use.who == "human" and "p" in use.modes:
            verb = use.verb.infinitive
            objects[verb] = objects.get(verb, set()) | object_texts(use)
            whens[verb] = min(whens.get(verb, 10**9), len(time_texts(use)))
    return sum(subjects * whens[verb] * len(texts) for verb, texts in objects.items())
