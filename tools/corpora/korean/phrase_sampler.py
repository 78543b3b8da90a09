"""Draw Korean noun phrases: subjects and objects, definite and indefinite."""

from __future__ import annotations

from tools.corpora.choice import Rng, Weighted
from tools.corpora.korean.hangul import particle
from tools.corpora.korean.words import Lexicon, Name, Noun, Phrase, noun_phrase

__all__ = [
    "COMPANION_KINDS",
    "COUNTS",
    "FIRST_PERSON",
    "PLAIN_SUBJECT_KINDS",
    "SUBJECT_KINDS",
    "PhraseSampler",
    "owned_by",
]

FIRST_PERSON = Phrase("저", "I", "me", "", 0, "", "I")
WE = Phrase("우리", "we", "us", "", 3, "", "we")
SUBJECT_KINDS = Weighted(
    {"I": 14, "we": 5, "name": 26, "names": 4, "person": 20, "kin": 12, "parent": 13, "senior": 13}
)
PLAIN_SUBJECT_KINDS = Weighted({"I": 14, "we": 5, "name": 26, "names": 4, "person": 20, "kin": 12})
COMPANION_KINDS = Weighted({"name": 1, "kin": 1})
COUNTS = Weighted({1: 9, 2: 6, 3: 6, 4: 4, 5: 4, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2, 11: 1, 12: 2})


def named(name: Name) -> Phrase:
    """Return the phrase of a person's name, with 씨."""
    return Phrase(f"{name.korean} 씨", name.english, name.english, "", 2, name.korean, name.pronoun)


def owned_by(phrase: Phrase, subject: Phrase) -> bool:
    """Return whether the subject is also the owner in the phrase: 민수 씨는 민수 씨의 책을 ..."""
    return bool(subject.head) and phrase.text.startswith(f"{subject.text}의")


class PhraseSampler:
    """Draw noun phrases and pronouns."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.people = {kind: lexicon.resolve(kind) for kind in ("person", "kin", "parent", "senior")}
        self.names = tuple(named(name) for name in lexicon.names.values())

    def determined_phrase(
        self, rng: Rng, noun: Noun, determiner: str, adjective_share: float, count: int = 0
    ) -> Phrase:
        """Draw a noun with a given determiner, and with an adjective in a share of the cases."""
        if determiner == "의":
            determiner = rng.pick(self.names).head
        adjective = rng.pick(noun.adjectives) if noun.adjectives and rng.chance(adjective_share) else ""
        return noun_phrase(noun.korean, determiner, adjective, count)

    def any_phrase(self, rng: Rng, noun: Noun, adjective_share: float = 0.45) -> Phrase:
        """Draw a noun with any determiner, or counted."""
        if noun.counter and "-" in noun.determiners and rng.chance(0.4 if noun.unit else 0.22):
            return self.determined_phrase(rng, noun, "-", 0.25, rng.pick_weighted(COUNTS))
        return self.determined_phrase(rng, noun, rng.pick(noun.determiners), adjective_share)

    def indefinite_phrase(self, rng: Rng, noun: Noun) -> Phrase:
        """Draw an indefinite phrase, sometimes counted."""
        if noun.counter and rng.chance(0.35 if noun.unit else 0.15):
            return self.determined_phrase(rng, noun, "-", 0.2, rng.pick_weighted(COUNTS))
        return self.determined_phrase(rng, noun, "-", 0.4)

    def definite_phrase(self, rng: Rng, noun: Noun, adjective_share: float = 0.25) -> Phrase:
        """Draw a definite phrase with one of the determiners of the noun."""
        return self.determined_phrase(rng, noun, rng.pick(noun.determiners), adjective_share)

    def subject(self, rng: Rng, kinds: Weighted[str] = SUBJECT_KINDS) -> Phrase:
        """Draw a subject of one of the kinds."""
        kind = rng.pick_weighted(kinds)
        if kind in ("I", "we"):
            return FIRST_PERSON if kind == "I" else WE
        if kind == "name":
            return rng.pick(self.names)
        if kind == "names":
            first, second = rng.pick(self.names), rng.pick(self.names)
            text = f"{particle(first.text, 'with')} {second.text}"
            both = f"{first.english} and {second.english}"
            return first if first is second else Phrase(text, both, both, "", 3, "", "they")
        return self.definite_phrase(rng, rng.pick(self.people[kind]))
