"""Drawing Korean noun phrases: who acts, and what is acted on, by what is known of it."""

from __future__ import annotations

from tools.corpora.choice import Rng, Weighted
from tools.corpora.korean.hangul import particle
from tools.corpora.korean.words import Lexicon, Name, Noun, Phrase, noun_phrase

__all__ = ["ANYBODY", "COMMON", "COMPANIONS", "COUNTS", "I_MYSELF", "Phrases", "own"]

I_MYSELF = Phrase("저", "I", "me", "", 0, "", "I")
WE = Phrase("우리", "we", "us", "", 3, "", "we")
ANYBODY = Weighted({"I": 14, "we": 5, "name": 26, "names": 4, "person": 20, "kin": 12, "parent": 13, "senior": 13})
COMMON = Weighted({"I": 14, "we": 5, "name": 26, "names": 4, "person": 20, "kin": 12})
COMPANIONS = Weighted({"name": 1, "kin": 1})
COUNTS = Weighted({1: 9, 2: 6, 3: 6, 4: 4, 5: 4, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2, 11: 1, 12: 2})


def named(name: Name) -> Phrase:
    """A person by name, with 씨."""
    return Phrase(f"{name.korean} 씨", name.english, name.english, "", 2, name.korean, name.pronoun)


def own(phrase: Phrase, subject: Phrase) -> bool:
    """Whether it is said to belong to the very person who is the subject: 민수 씨는 민수 씨의 책을 ..."""
    return bool(subject.head) and phrase.text.startswith(f"{subject.text}의")


class Phrases:
    """Draws noun phrases and pronouns."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.people = {kind: lexicon.resolve(kind) for kind in ("person", "kin", "parent", "senior")}
        self.names = tuple(named(name) for name in lexicon.names.values())

    def described(self, rng: Rng, noun: Noun, determiner: str, share: float, count: int = 0) -> Phrase:
        """A noun with a given determiner, and with an adjective in a share of the cases."""
        if determiner == "의":
            determiner = rng.pick(self.names).head
        adjective = rng.pick(noun.adjectives) if noun.adjectives and rng.chance(share) else ""
        return noun_phrase(noun.korean, determiner, adjective, count)

    def any_phrase(self, rng: Rng, noun: Noun, share: float = 0.45) -> Phrase:
        """The noun with any determiner, or counted."""
        if noun.counter and "-" in noun.determiners and rng.chance(0.4 if noun.unit else 0.22):
            return self.described(rng, noun, "-", 0.25, rng.weigh(COUNTS))
        return self.described(rng, noun, rng.pick(noun.determiners), share)

    def new_phrase(self, rng: Rng, noun: Noun) -> Phrase:
        """The noun as something not yet known, sometimes counted."""
        if noun.counter and rng.chance(0.35 if noun.unit else 0.15):
            return self.described(rng, noun, "-", 0.2, rng.weigh(COUNTS))
        return self.described(rng, noun, "-", 0.4)

    def known_phrase(self, rng: Rng, noun: Noun, share: float = 0.25) -> Phrase:
        """The noun as the topic of a sentence."""
        return self.described(rng, noun, rng.pick(noun.determiners), share)

    def subject(self, rng: Rng, kinds: Weighted[str] = ANYBODY) -> Phrase:
        """Somebody who does something."""
        kind = rng.weigh(kinds)
        if kind in ("I", "we"):
            return I_MYSELF if kind == "I" else WE
        if kind == "name":
            return rng.pick(self.names)
        if kind == "names":
            one, other = rng.pick(self.names), rng.pick(self.names)
            text = f"{particle(one.text, 'with')} {other.text}"
            both = f"{one.english} and {other.english}"
            return one if one is other else Phrase(text, both, both, "", 3, "", "they")
        return self.known_phrase(rng, rng.pick(self.people[kind]))
