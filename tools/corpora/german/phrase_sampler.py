"""Draw German noun phrases: subjects and objects, definite and indefinite."""

from __future__ import annotations

from tools.corpora.choice import Rng, Weighted
from tools.corpora.german.words import Lexicon, Noun, Phrase, noun_phrase

__all__ = ["NO_OWNER", "OBJECTIVE", "PRONOUNS", "THEY", "PhraseSampler", "pronoun"]

PRONOUNS = (
    Phrase("ich", "mich", "mir", "I", 0, "", ""),
    Phrase("du", "dich", "dir", "you", 1, "", ""),
    Phrase("er", "ihn", "ihm", "he", 2, "m", ""),
    Phrase("sie", "sie", "ihr", "she", 2, "f", ""),
    Phrase("wir", "uns", "uns", "we", 3, "", ""),
)
OBJECTIVE = ("me", "you", "him", "her", "us")  # the English objects of PRONOUNS
PRONOUN_WEIGHTS = Weighted(dict(zip(PRONOUNS, (5, 4, 3, 3, 3), strict=True)))
SUBJECT_KINDS = Weighted({"pronoun": 32, "name": 22, "names": 5, "person": 28, "kin": 15})
COUNTS = Weighted({2: 6, 3: 6, 4: 4, 5: 4, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2, 11: 1, 12: 2})
NO_OWNER = PRONOUNS[0]  # an owner without his or her
THEY = Phrase("sie", "sie", "ihnen", "they", 3, "", "")


def pronoun(subject: Phrase) -> Phrase:
    """Return the pronoun for a second mention of a subject: er, sie, or the subject itself if it is a pronoun."""
    if not subject.head and subject.english in ("I", "you", "we"):
        return subject
    if subject.person == 3:
        return THEY
    return PRONOUNS[2] if subject.gender == "m" else PRONOUNS[3]


class PhraseSampler:
    """Draw noun phrases and pronouns."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.names = tuple(lexicon.names.values())
        self.people = {kind: lexicon.resolve(kind) for kind in ("person", "kin", "animal")}
        self.people["pet"] = lexicon.resolve("Katze Hund")
        outdoors = [(*words, lexicon.resolve(places)) for *words, places in lexicon.tables["lists"]["prepositions"]]
        self.prepositions = {
            "outdoors": outdoors,
            "indoors": [(*words, tuple(n for n in places if n.kind == "furniture")) for *words, places in outdoors],
        }

    def determined_phrase(
        self, rng: Rng, noun: Noun, determiner: str, plural: bool, adjective_share: float
    ) -> Phrase:
        """Draw a noun with a given determiner, and with an adjective in a share of the cases."""
        adjective = rng.pick(noun.adjectives) if noun.adjectives and rng.chance(adjective_share) else ""
        return noun_phrase(noun.singular, determiner, adjective, plural)

    def any_phrase(self, rng: Rng, noun: Noun, owner: Phrase) -> Phrase:
        """Draw a noun with any determiner, singular, plural or counted; his and her fit the gender of the owner."""
        draw = rng.pick
        if noun.plural_determiners and rng.chance(0.36):
            if "-" in noun.plural_determiners and rng.chance(0.3):
                return self.determined_phrase(rng, noun, str(rng.pick_weighted(COUNTS)), True, 0.25)
            return self.determined_phrase(rng, noun, draw(noun.plural_determiners), True, 0.45)
        return self.determined_phrase(
            rng, noun, self.fit_possessive(rng, draw(noun.determiners), owner), False, 0.55
        )

    def fit_possessive(self, rng: Rng, determiner: str, owner: Phrase) -> str:
        """Often replace mein or dein by sein or ihr if the owner is in the third person."""
        if determiner in ("mein", "dein") and owner.gender in ("m", "f") and owner.person == 2 and rng.chance(0.6):
            return "sein" if owner.gender == "m" else "ihr"
        return determiner

    def indefinite_phrase(self, rng: Rng, noun: Noun) -> Phrase:
        """Draw an indefinite phrase: ein Apfel, Äpfel, Milch."""
        plural = bool(noun.plural_determiners) and rng.chance(0.4)
        determiner = "-" if plural or "-" in noun.determiners else "ein"
        return self.determined_phrase(rng, noun, determiner, plural, 0.3)

    def definite_phrase(
        self, rng: Rng, noun: Noun, owner: Phrase, adjective_share: float = 0.35, plural_share: float = 0.0
    ) -> Phrase:
        """Draw a definite phrase with der, dies, mein ...; with shares of adjectives and of plurals."""
        plural = bool(noun.plural_determiners) and rng.chance(0.25 if noun.kind == "person" else plural_share)
        options = noun.plural_determiners if plural else noun.determiners
        determiner = rng.pick([option for option in options if option not in ("ein", "-")])
        return self.determined_phrase(
            rng, noun, self.fit_possessive(rng, determiner, owner), plural, adjective_share
        )

    def generic_phrase(self, rng: Rng, noun: Noun, owner: Phrase) -> Phrase:
        """Draw a generic phrase without a determiner if the noun is a substance, else a definite phrase."""
        if "-" in noun.determiners:
            return self.determined_phrase(rng, noun, "-", False, 0.25)
        return self.definite_phrase(rng, noun, owner, plural_share=0.25)

    def negated_phrase(self, rng: Rng, noun: Noun, owner: Phrase) -> Phrase:
        """Draw a phrase with kein, or a definite phrase for a clause with nicht."""
        if rng.chance(0.4) or not {"ein", "-"} & set(noun.determiners):
            return self.definite_phrase(rng, noun, owner, plural_share=0.25)
        plural = bool(noun.plural_determiners) and rng.chance(0.25)
        return self.determined_phrase(rng, noun, "kein", plural, 0.25)

    def subject(self, rng: Rng, agent: str, persons: str = "0123") -> Phrase:
        """Draw a subject in one of the grammatical persons."""
        while True:
            subject = self.any_subject(rng, agent)
            if str(subject.person) in persons:
                return subject

    def any_subject(self, rng: Rng, agent: str) -> Phrase:
        """Draw a pronoun, name, two names, a person, a relative or an animal."""
        kind = rng.pick_weighted(SUBJECT_KINDS) if agent == "human" else agent
        if kind == "pronoun":
            return rng.pick_weighted(PRONOUN_WEIGHTS)
        if kind == "name":
            return rng.pick(self.names)
        if kind == "names":
            first, second = rng.pick(self.names), rng.pick(self.names)
            both = f"{first.nominative} und {second.nominative}"
            return first if first is second else Phrase(both, both, both, both.replace(" und ", " and "), 3, "", "")
        noun = rng.pick(self.people[kind])
        plural = bool(noun.plural_determiners) and rng.chance(0.25)
        options = noun.plural_determiners if plural else noun.determiners
        return self.determined_phrase(rng, noun, rng.pick(options), plural, 0.35)

    def location(self, rng: Rng, setting: str) -> tuple[str, str, Phrase]:
        """Draw a preposition, its English and its object, "outdoors" or "indoors"."""
        german, preposition, places = rng.pick(self.prepositions[setting])
        return german, preposition, self.definite_phrase(rng, rng.pick(places), NO_OWNER, 0.1)
