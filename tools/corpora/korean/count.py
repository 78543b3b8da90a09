"""How many Korean-English sentences there are: a lower bound, counted."""

from __future__ import annotations

from tools.corpora.grammar import count_statements
from tools.corpora.korean.clauses import TIMES
from tools.corpora.korean.drawing import Drawing, Use
from tools.corpora.korean.hangul import particle
from tools.corpora.korean.words import Noun, noun_phrase

__all__ = ["count_sentences", "object_texts", "subject_texts"]


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


def count_sentences(drawing: Drawing) -> int:
    """Count the statements "TOPIC TIME OBJECT VERB" in the past, without counted objects: a lower bound."""
    statements = (
        (use.verb.past_stem(), object_texts(use), len(TIMES.past_texts("q" in use.modes)))
        for use in drawing.object_uses.items
        if "p" in use.modes
    )
    return count_statements(len(subject_texts(drawing)), statements)
