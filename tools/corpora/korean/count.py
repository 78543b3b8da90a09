"""How many Korean-English sentences there are: a lower bound, counted."""

from __future__ import annotations

from tools.corpora.korean.clauses import times
from tools.corpora.korean.drawing import Drawing, Use
from tools.corpora.korean.hangul import particle
from tools.corpora.korean.words import Noun, noun_phrase

__all__ = ["count_statements", "object_texts", "subject_texts", "time_texts"]


def phrase_texts(nouns: tuple[Noun, ...], kind: str) -> set[str]:
    """The nouns with every determiner of theirs (a person's left out) and every adjective, with a particle."""
    return {
        particle(noun_phrase(noun.korean, word, adjective).text, kind)
        for noun in nouns
        for word in noun.determiners
        if word != "의"
        for adjective in ("", *noun.adjectives)
    }


def subject_texts(drawing: Drawing) -> set[str]:
    """Every topic in the third person singular."""
    people = sum(drawing.people.values(), ())
    return phrase_texts(people, "topic") | {particle(name.text, "topic") for name in drawing.names}


def object_texts(use: Use) -> set[str]:
    """Every object of a verb that is not counted."""
    return phrase_texts(use.nouns, "object")


def time_texts(use: Use) -> set[str]:
    """Every time of the past that goes with a verb."""
    return {time.foreign for group in times("lately" if "q" in use.modes else "past").items for time in group}


def count_statements(drawing: Drawing) -> int:
    """The statements "TOPIC TIME OBJECT VERB" in the past.

    Each part is counted as its set of different texts, and each choice of parts is a sentence that the grammar
    can make. Counted objects, places, companions, other tenses, denials, questions and all other kinds of
    sentence are left out, so this is a lower bound.
    """
    subjects = len(subject_texts(drawing))
    objects: dict[str, set[str]] = {}
    whens: dict[str, int] = {}
    for use in drawing.object_uses.items:
        if "p" in use.modes:
            verb = use.verb.past_stem()
            objects[verb] = objects.get(verb, set()) | object_texts(use)
            whens[verb] = min(whens.get(verb, 10**9), len(time_texts(use)))
    return sum(subjects * whens[verb] * len(texts) for verb, texts in objects.items())
