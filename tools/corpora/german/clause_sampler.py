"""Draw German clauses: subject, verb, objects, mode, time and place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tools.corpora.choice import Rng, Weighted, combine, join
from tools.corpora.clause import Time
from tools.corpora.german.clauses import NOW, TIMES, Clause
from tools.corpora.german.phrase_sampler import OBJECTIVE, PRONOUNS, PhraseSampler
from tools.corpora.german.words import Lexicon, Noun, Phrase, Verb

__all__ = ["ClauseSampler", "Use"]

ALL_MODES = "higpfmsk"  # all modes of a statement
MODE_FREQUENCIES = {
    "h": 7.0,
    "i": 7.0,
    "g": 5.0,
    "p": 5.0,
    "f": 2.0,
    "m": 3.0,
    "s": 3.0,
    "k": 3.0,
}  # mode -> relative frequency
MODES = {
    "h": "present",
    "i": "present",
    "g": "progressive",
    "p": "past",
    "f": "future",
    "s": "present",
    "k": "present",
}
MODALS = ("can", "must", "may", "want", "would like")


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a verb: its objects, places and modes.

    Attributes:
        modes: letters of the modes in which it is used, as in the lexicon.
        agent: kind of its subjects: human, animal or pet.
        nouns: its objects.
        places: (German, English) places or directions.
        preposition: (German, case, English).
    """

    verb: Verb
    modes: str
    agent: str = "human"
    nouns: tuple[Noun, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    preposition: tuple[str, str, str] = ("", "", "")


@cache
def letters(modes: str, allowed: str) -> Weighted[str]:
    """Return the allowed modes of a use, with their frequencies."""
    return Weighted({letter: MODE_FREQUENCIES[letter] for letter in modes if letter in allowed})


def weighted(uses: list[Use]) -> Weighted[Use]:
    """Weight the uses so that each verb is equally frequent, those with mode i twice as frequent."""
    verbs = [use.verb.infinitive for use in uses]
    return Weighted({use: (2 if "i" in use.modes else 1) / verbs.count(use.verb.infinitive) for use in uses})


class ClauseSampler(PhraseSampler):
    """Draw clauses."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        tables = lexicon.tables
        uses, places = tables["uses"], {name: tuple(map(tuple, rows)) for name, rows in tables["places"].items()}
        verb, resolve = lexicon.verbs, lexicon.resolve
        self.places: dict[str, tuple[tuple[str, str], ...]] = places
        objects = [Use(verb[v], modes, agent, resolve(nouns)) for v, nouns, modes, agent in uses["object"]]
        self.object_uses = weighted(objects)
        by_noun: dict[str, list[Use]] = {}
        for use in objects:
            for noun in use.nouns if use.agent == "human" else ():
                by_noun.setdefault(noun.singular, []).append(replace(use, nouns=(noun,)))
        self.uses_of_noun = list(by_noun.values())
        self.recipient_uses = weighted(
            [Use(verb[v], modes, nouns=resolve(nouns)) for v, nouns, modes in uses["recipient"]]
        )
        self.prepositional_uses = weighted(
            [
                Use(verb[v], modes, nouns=resolve(nouns), preposition=(german, case, english_preposition))
                for v, german, case, english_preposition, nouns, modes in uses["prepositional"]
            ]
        )
        self.place_uses = weighted(
            [
                Use(verb[v], modes, agent, places=sum((places[name] for name in names.split()), ()))
                for v, names, modes, agent in uses["place"]
            ]
        )
        lists = tables["lists"]
        self.creation_verbs = frozenset(lists["creation_verbs"])
        self.never_created = frozenset(
            combine(word, noun) for word in lists["never_created"] for noun in lexicon.nouns
        )
        self.clauses = Weighted(
            {
                self.object_clause: 58,
                self.recipient_clause: 10,
                self.prepositional_clause: 12,
                self.place_clause: 20,
            }
        )

    def start_clause(
        self, rng: Rng, use: Use, allowed: str = ALL_MODES, subject: Phrase | None = None
    ) -> tuple[Clause, str]:
        """Draw subject, mode and time of a clause; return it with the letter of its mode."""
        letter = rng.pick_weighted(letters(use.modes, allowed))
        mode = rng.pick(MODALS) if letter == "m" else MODES[letter]
        present = mode in ("present", "progressive")
        persons = self.persons(use) if present else "0123"
        if subject is None:
            as_first_person = present and "e" in use.modes and rng.chance(0.3)
            subject = PRONOUNS[0] if as_first_person else self.subject(rng, use.agent, persons)
        elif str(subject.person) not in persons:
            letter, mode = "p", "past"
        clause = Clause(subject, use.verb, mode, self.time(rng, letter, "q" in use.modes))
        clause.negative = letter in "pfs" and rng.chance(0.13)
        if subject.head:
            clause.combinations += [combine(subject.head, use.verb.infinitive), *subject.combinations]
        return clause, letter

    def persons(self, use: Use) -> str:
        """Return the grammatical persons in which a verb is used in the present."""
        verb = use.verb
        if verb.prefix or verb.english.past == verb.english.base:  # "we read" could be past
            return "2"
        return "023" if "e" in use.modes else "23"

    def time(self, rng: Rng, letter: str, near: bool) -> Time:
        """Draw a time that fits a mode; a near one if `near`."""
        if letter == "g":
            return NOW
        return TIMES.draw(rng, letter, near, 0.4)

    def add_combinations(self, clause: Clause, phrase: Phrase) -> None:
        """Add the combinations of a noun phrase in a clause."""
        if phrase.head:
            clause.combinations += [combine(clause.verb.infinitive, phrase.head), *phrase.combinations]

    def draw_object(self, rng: Rng, clause: Clause, letter: str, nouns: tuple[Noun, ...]) -> Phrase:
        """Draw an object of the clause and add its combinations."""
        noun = rng.pick(nouns)
        if clause.negative:
            phrase = self.negated_phrase(rng, noun, clause.subject)
        elif letter == "i":
            phrase = self.indefinite_phrase(rng, noun)
        elif letter == "k":
            phrase = self.generic_phrase(rng, noun, clause.subject)
        else:
            phrase = self.any_phrase(rng, noun, clause.subject)
        if clause.verb.infinitive in self.creation_verbs and not self.never_created.isdisjoint(phrase.combinations):
            return self.draw_object(rng, clause, letter, nouns)
        self.add_combinations(clause, phrase)
        return phrase

    def draw_object_pronoun(self, rng: Rng, subject: Phrase) -> int | None:
        """In some cases draw a pronoun as object, as its index in PRONOUNS; never the subject itself."""
        if not rng.chance(0.2):
            return None
        index = rng.pick(range(len(PRONOUNS)))
        both_first_person = {PRONOUNS[index].english, subject.english} <= {"I", "we"}
        return None if both_first_person or PRONOUNS[index] is subject else index

    def use(self, rng: Rng, uses: Weighted[Use], allowed: str, subject: Phrase | None) -> Use:
        """Draw a use that has one of the allowed modes and, if a subject is given, a human agent."""
        while True:
            use = rng.pick_weighted(uses)
            if any(letter in allowed for letter in use.modes) and (subject is None or use.agent == "human"):
                return use

    def object_use(self, rng: Rng, allowed: str, subject: Phrase | None = None) -> Use:
        """Draw a use with objects; in 60 % of the cases draw the object first, so that no noun is rare."""
        uses = rng.pick(self.uses_of_noun) if rng.chance(0.6) else []
        fitting = [use for use in uses if any(letter in allowed for letter in use.modes)]
        return rng.pick(fitting) if fitting else self.use(rng, self.object_uses, allowed, subject)

    def object_clause(self, rng: Rng, allowed: str = ALL_MODES, subject: Phrase | None = None) -> Clause:
        """Draw a clause with a direct object."""
        use = self.object_use(rng, allowed, subject)
        clause, letter = self.start_clause(rng, use, allowed, subject)
        if use.nouns[0].kind in ("kin", "person") and use.agent == "human":
            index = self.draw_object_pronoun(rng, clause.subject)
            if index is not None:
                clause.early, clause.rest = PRONOUNS[index].accusative, OBJECTIVE[index]
                clause.late = "nicht" if clause.negative else ""
                return clause
        phrase = self.draw_object(rng, clause, letter, use.nouns)
        negation = "nicht" if clause.negative and phrase.definite else ""
        clause.late, clause.rest = join(phrase.accusative, negation), phrase.english
        return clause

    def recipient_clause(self, rng: Rng, allowed: str = ALL_MODES, subject: Phrase | None = None) -> Clause:
        """Draw a clause with an indirect and a direct object."""
        use = self.use(rng, self.recipient_uses, allowed, subject)
        clause, letter = self.start_clause(rng, use, allowed, subject)
        index = self.draw_object_pronoun(rng, clause.subject)
        if index is None:
            noun = rng.pick(self.people["kin" if rng.chance(0.5) else "person"])
            recipient = self.definite_phrase(rng, noun, clause.subject)
            self.add_combinations(clause, recipient)
            clause.early, clause.rest = recipient.dative, recipient.english
        else:
            clause.early, clause.rest = PRONOUNS[index].dative, OBJECTIVE[index]
        phrase = self.draw_object(rng, clause, letter, use.nouns)
        negation = "nicht" if clause.negative and phrase.definite else ""
        clause.late, clause.rest = join(phrase.accusative, negation), join(clause.rest, phrase.english)
        return clause

    def prepositional_clause(self, rng: Rng, allowed: str = ALL_MODES, subject: Phrase | None = None) -> Clause:
        """Draw a clause with a prepositional object, or with a dative object as of helfen."""
        use = self.use(rng, self.prepositional_uses, allowed, subject)
        preposition, case, english_preposition = use.preposition
        clause, _ = self.start_clause(rng, use, allowed, subject)
        negation = "nicht" if clause.negative else ""
        index = self.draw_object_pronoun(rng, clause.subject) if use.nouns[0].kind in ("person", "kin") else None
        if index is not None:
            phrase, translation = PRONOUNS[index], OBJECTIVE[index]
        else:
            phrase = self.definite_phrase(rng, rng.pick(use.nouns), clause.subject)
            translation = phrase.english
            self.add_combinations(clause, phrase)
        form = phrase.dative if case == "dative" else phrase.accusative
        clause.late = join(negation, preposition, form) if preposition else join(form, negation)
        if not preposition and index is not None:
            clause.early, clause.late = form, negation
        clause.rest = join(english_preposition, translation)
        return clause

    def place_clause(self, rng: Rng, allowed: str = ALL_MODES, subject: Phrase | None = None) -> Clause:
        """Draw a clause with a place."""
        use = self.use(rng, self.place_uses, allowed, subject)
        clause, _ = self.start_clause(rng, use, allowed, subject)
        place, translation = rng.pick(use.places)
        clause.combinations.append(combine(use.verb.infinitive, place))
        clause.late, clause.rest = join("nicht" if clause.negative else "", place), translation
        return clause

    def any_clause(self, rng: Rng, allowed: str = ALL_MODES, subject: Phrase | None = None) -> Clause:
        """Draw a clause of any kind."""
        return rng.pick_weighted(self.clauses)(rng, allowed, subject)
