"""Drawing German noun phrases: who acts, and what is acted on, by what is known of it."""

from __future__ import annotations

from tools.corpora.choice import Rng, Weighted
from tools.corpora.german.words import Lexicon, Noun, Phrase, noun_phrase

__all__ = ["NOBODY", "OBJECTIVE", "PRONOUNS", "THEY", "Phrases", "pronoun"]

PRONOUNS = (
    Phrase("ich", "mich", "mir", "I", 0, "", ""),
    Phrase("du", "dich", "dir", "you", 1, "", ""),
    Phrase("er", "ihn", "ihm", "he", 2, "m", ""),
    Phrase("sie", "sie", "ihr", "she", 2, "f", ""),
    Phrase("wir", "uns", "uns", "we", 3, "", ""),
)
OBJECTIVE = ("me", "you", "him", "her", "us")  # the English objects of PRONOUNS
ANYONE = Weighted(dict(zip(PRONOUNS, (5, 4, 3, 3, 3), strict=True)))
WHO = Weighted({"pronoun": 32, "name": 22, "names": 5, "person": 28, "kin": 15})
COUNTS = Weighted({2: 6, 3: 6, 4: 4, 5: 4, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2, 11: 1, 12: 2})
NOBODY = PRONOUNS[0]  # an owner whose things are not said to be his or hers
THEY = Phrase("sie", "sie", "ihnen", "they", 3, "", "")


def pronoun(subject: Phrase) -> Phrase:
    """What a subject is called when it is named again: er, sie, or the pronoun that it is."""
    if not subject.head and subject.english in ("I", "you", "we"):
        return subject
    if subject.person == 3:
        return THEY
    return PRONOUNS[2] if subject.gender == "m" else PRONOUNS[3]


class Phrases:
    """Draws noun phrases and pronouns."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.names = tuple(lexicon.names.values())
        self.people = {kind: lexicon.resolve(kind) for kind in ("person", "kin", "animal")}
        self.people["pet"] = lexicon.resolve("Katze Hund")
        outdoors = [(*words, lexicon.resolve(places)) for *words, places in lexicon.tables["said"]["prepositions"]]
        self.prepositions = {
            "outdoors": outdoors,
            "indoors": [(*words, tuple(n for n in places if n.kind == "furniture")) for *words, places in outdoors],
        }

    def described(self, rng: Rng, noun: Noun, determiner: str, many: bool, share: float) -> Phrase:
        """A noun with a given determiner, and with an adjective in a share of the cases."""
        adjective = rng.pick(noun.adjectives) if noun.adjectives and rng.chance(share) else ""
        return noun_phrase(noun.singular, determiner, adjective, many)

    def any_phrase(self, rng: Rng, noun: Noun, owner: Phrase) -> Phrase:
        """The noun with any determiner, singular, plural or counted; his and her need an owner of that gender."""
        draw = rng.pick
        if noun.plural_determiners and rng.chance(0.36):
            if "-" in noun.plural_determiners and rng.chance(0.3):
                return self.described(rng, noun, str(rng.weigh(COUNTS)), True, 0.25)
            return self.described(rng, noun, draw(noun.plural_determiners), True, 0.45)
        return self.described(rng, noun, self.possessed(rng, draw(noun.determiners), owner), False, 0.55)

    def possessed(self, rng: Rng, determiner: str, owner: Phrase) -> str:
        """Often his or her own instead of my or your."""
        if determiner in ("mein", "dein") and owner.gender in ("m", "f") and owner.person == 2 and rng.chance(0.6):
            return "sein" if owner.gender == "m" else "ihr"
        return determiner

    def new_phrase(self, rng: Rng, noun: Noun) -> Phrase:
        """The noun as something not yet known: ein Apfel, Äpfel, Milch."""
        many = bool(noun.plural_determiners) and rng.chance(0.4)
        determiner = "-" if many or "-" in noun.determiners else "ein"
        return self.described(rng, noun, determiner, many, 0.3)

    def known_phrase(self, rng: Rng, noun: Noun, owner: Phrase, share: float = 0.35, plural: float = 0.0) -> Phrase:
        """The noun as something known: der, dies, mein ...; with shares of adjectives and of plurals."""
        many = bool(noun.plural_determiners) and rng.chance(0.25 if noun.kind == "person" else plural)
        options = noun.plural_determiners if many else noun.determiners
        determiner = rng.pick([option for option in options if option not in ("ein", "-")])
        return self.described(rng, noun, self.possessed(rng, determiner, owner), many, share)

    def loved_phrase(self, rng: Rng, noun: Noun, owner: Phrase) -> Phrase:
        """The noun as something one likes in general, when it is a substance, or as something known."""
        if "-" in noun.determiners:
            return self.described(rng, noun, "-", False, 0.25)
        return self.known_phrase(rng, noun, owner, plural=0.25)

    def denied_phrase(self, rng: Rng, noun: Noun, owner: Phrase) -> Phrase:
        """The noun after kein, or a known one that nicht will deny."""
        if rng.chance(0.4) or not {"ein", "-"} & set(noun.determiners):
            return self.known_phrase(rng, noun, owner, plural=0.25)
        many = bool(noun.plural_determiners) and rng.chance(0.25)
        return self.described(rng, noun, "kein", many, 0.25)

    def subject(self, rng: Rng, who: str, persons: str = "0123") -> Phrase:
        """Somebody who does something, in one of the grammatical persons."""
        while True:
            subject = self.somebody(rng, who)
            if str(subject.person) in persons:
                return subject

    def somebody(self, rng: Rng, who: str) -> Phrase:
        """A pronoun, name, two names, a person, a relative or an animal."""
        kind = rng.weigh(WHO) if who == "human" else who
        if kind == "pronoun":
            return rng.weigh(ANYONE)
        if kind == "name":
            return rng.pick(self.names)
        if kind == "names":
            one, other = rng.pick(self.names), rng.pick(self.names)
            both = f"{one.nominative} und {other.nominative}"
            return one if one is other else Phrase(both, both, both, both.replace(" und ", " and "), 3, "", "")
        noun = rng.pick(self.people[kind])
        many = bool(noun.plural_determiners) and rng.chance(0.25)
        options = noun.plural_determiners if many else noun.determiners
        return self.described(rng, noun, rng.pick(options), many, 0.35)

    def location(self, rng: Rng, where: str) -> tuple[str, str, Phrase]:
        """A preposition, its English, and the thing it relates to: outdoors or indoors."""
        german, word, places = rng.pick(self.prepositions[where])
        return german, word, self.known_phrase(rng, rng.pick(places), NOBODY, 0.1)
