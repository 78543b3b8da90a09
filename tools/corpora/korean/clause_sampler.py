"""Draw Korean clauses: subject, verb, objects, mode, time and place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tools.corpora import english
from tools.corpora.choice import Rng, Weighted, combine, join
from tools.corpora.clause import NO_TIME, Time
from tools.corpora.korean.clauses import NOW, TIMES, Clause
from tools.corpora.korean.hangul import Predicate, directional, native_numeral, particle
from tools.corpora.korean.phrase_sampler import (
    COMPANION_KINDS,
    FIRST_PERSON,
    PLAIN_SUBJECT_KINDS,
    SUBJECT_KINDS,
    PhraseSampler,
    owned_by,
)
from tools.corpora.korean.words import Lexicon, Noun, Phrase

__all__ = ["ClauseSampler", "Use"]

MODE_FREQUENCIES = {
    "h": 9.0,
    "i": 9.0,
    "g": 6.0,
    "p": 6.0,
    "f": 3.0,
    "m": 4.0,
    "s": 3.0,
}  # mode -> relative frequency
MODES = {"h": "present", "i": "present", "g": "progressive", "p": "past", "f": "future", "s": "present"}
MODALS = ("can", "want")
MORE_MODALS = ("can", "must", "must", "want", "intend", "intend")
NEGATABLE_MODES = ("past", "future", "can")
MOVING = ("go", "come", "arrive")
HOURS = range(2, 6)
VEHICLES = (
    *(("버스", "by bus"), ("지하철", "by underground"), ("기차", "by train"), ("택시", "by taxi")),
    *(("자전거", "by bicycle"), ("자동차", "by car")),
)


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a verb: its objects, places and modes.

    Attributes:
        name: the verb's name in the lexicon.
        modes: letters of the modes in which it is used, as in the lexicon.
        nouns: its objects.
        places: (Korean, English) places or directions.
        senior: the verb for honorific recipients, if it is another one.
    """

    name: str
    verb: Predicate
    modes: str
    nouns: tuple[Noun, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    senior: Predicate | None = None


def without_possessives(nouns: tuple[Noun, ...], modes: str) -> tuple[Noun, ...]:
    """Return the nouns, without possessive determiners if the use has mode d (make, buy)."""
    if "d" not in modes:
        return nouns
    return tuple(
        replace(
            noun,
            determiners=tuple(determiner for determiner in noun.determiners if determiner in ("-", "이", "그")),
        )
        for noun in nouns
    )


@cache
def letters(modes: str, allowed: str) -> Weighted[str]:
    """Return the allowed modes of a use, with their frequencies."""
    return Weighted({letter: MODE_FREQUENCIES[letter] for letter in modes if letter in allowed})


def weighted(uses: list[Use]) -> Weighted[Use]:
    """Weight the uses so that each verb is equally frequent, those with modes h or i twice as frequent."""
    names = [use.name for use in uses]
    return Weighted(
        {use: (2 if "i" in use.modes or "h" in use.modes else 1) / names.count(use.name) for use in uses}
    )


class ClauseSampler(PhraseSampler):
    """Draw clauses."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        uses, verbs, resolve = lexicon.tables["uses"], lexicon.verbs, lexicon.resolve
        self.places: dict[str, tuple[tuple[str, str], ...]] = {
            group: tuple((korean, translation) for korean, translation in rows)
            for group, rows in {**lexicon.tables["places"], "": []}.items()
        }
        objects = [
            Use(name, verbs[name], modes, without_possessives(resolve(nouns), modes), self.places[places])
            for name, nouns, modes, places in uses["object"]
        ]
        self.object_uses = weighted(objects)
        sequential = lexicon.tables["lists"]["sequential"]
        self.sequential_uses = weighted([use for use in objects if use.name in sequential])
        by_noun: dict[str, list[Use]] = {}
        for use in objects:
            for noun in use.nouns:
                by_noun.setdefault(noun.korean, []).append(replace(use, nouns=(noun,)))
        self.uses_of_noun = list(by_noun.values())
        self.recipient_uses = weighted(
            [
                Use(name, verbs[name], modes, resolve(nouns), senior=verbs[senior])
                for name, senior, nouns, modes in uses["recipient"]
            ]
        )
        self.place_uses = weighted(
            [
                Use(name, verbs[name], modes, places=sum((self.places[group] for group in groups.split()), ()))
                for name, groups, modes in uses["place"]
            ]
        )
        self.clauses = Weighted({self.object_clause: 62, self.recipient_clause: 16, self.place_clause: 22})

    def start_clause(self, rng: Rng, use: Use, allowed: str, subject: Phrase | None) -> tuple[Clause, str]:
        """Draw subject, mode and time of a clause; return it with the letter of its mode."""
        letter = rng.pick_weighted(letters(use.modes, allowed))
        english_verb = use.verb.english
        if subject is None:
            subject = self.subject(rng, SUBJECT_KINDS if "r" in use.modes else PLAIN_SUBJECT_KINDS)
        modals = MORE_MODALS if "e" in use.modes and not subject.honorific else MODALS
        mode = rng.pick(modals) if letter == "m" else MODES[letter]
        if (
            mode == "present" and english_verb.past == english_verb.base and subject.person != 2
        ):  # "I read" could be past
            letter, mode = "p", "past"
        clause = Clause(subject, use.verb, mode, self.time(rng, letter, "q" in use.modes))
        if (mode in NEGATABLE_MODES or letter == "s") and "n" not in use.modes and rng.chance(0.15):
            clause.negative = True
            if mode == "past" and rng.chance(0.35):
                clause.mode = "could"
        if subject.head:
            clause.combinations += [combine(subject.head, use.name), *subject.combinations]
        return clause, letter

    def time(self, rng: Rng, letter: str, near: bool) -> Time:
        """Draw a time that fits a mode; a near one if `near`."""
        if letter == "g":
            return NOW if rng.chance(0.5) else NO_TIME
        return TIMES.draw(rng, letter, near, 0.5)

    def use(self, rng: Rng, uses: Weighted[Use], allowed: str) -> Use:
        """Draw a use that has one of the allowed modes."""
        while True:
            use = rng.pick_weighted(uses)
            if any(letter in allowed for letter in use.modes):
                return use

    def object_use(self, rng: Rng, allowed: str) -> Use:
        """Draw a use with objects; in 55 % of the cases draw the object first, so that no noun is rare."""
        uses = rng.pick(self.uses_of_noun) if rng.chance(0.55) else []
        fitting = [use for use in uses if any(letter in allowed for letter in use.modes)]
        return rng.pick(fitting) if fitting else self.use(rng, self.object_uses, allowed)

    def draw_object(self, rng: Rng, clause: Clause, letter: str, use: Use) -> Phrase:
        """Draw an object of the clause."""
        noun = rng.pick(use.nouns)
        if letter == "i":
            return self.indefinite_phrase(rng, noun)
        if letter == "s":
            return self.determined_phrase(rng, noun, "-", 0.3)
        known = clause.negative or "t" in use.modes or "o" in use.modes
        phrase = self.definite_phrase(rng, noun) if known else self.any_phrase(rng, noun)
        return self.draw_object(rng, clause, letter, use) if owned_by(phrase, clause.subject) else phrase

    def add_combinations(self, clause: Clause, name: str, phrase: Phrase) -> None:
        """Add the combinations of a noun phrase in a clause."""
        if phrase.head:
            clause.combinations += [combine(name, phrase.head), *phrase.combinations]

    def companion(self, rng: Rng, clause: Clause) -> tuple[str, str]:
        """In some cases draw a companion of the subject: 제 친구와 함께 | with my friend."""
        subject = clause.subject
        if subject.person == 3 or clause.negative or not rng.chance(0.1):
            return "", ""
        companion = self.subject(rng, COMPANION_KINDS)
        if companion.head == subject.head or owned_by(companion, subject):
            return "", ""
        clause.combinations += companion.combinations
        return f"{particle(companion.text, 'with')} 함께", f"with {companion.english}"

    def object_clause(self, rng: Rng, allowed: str = "higpfms", subject: Phrase | None = None) -> Clause:
        """Draw a clause with an object, sometimes with a place and a companion."""
        return self.clause_of(rng, self.object_use(rng, allowed), allowed, subject)

    def sequential_clause(self, rng: Rng, allowed: str, subject: Phrase) -> Clause:
        """Draw an object clause with a verb that can precede or follow another action."""
        return self.clause_of(rng, rng.pick_weighted(self.sequential_uses), allowed, subject)

    def clause_of(self, rng: Rng, use: Use, allowed: str, subject: Phrase | None) -> Clause:
        """Draw a clause of a use with objects."""
        clause, letter = self.start_clause(rng, use, allowed, subject)
        phrase = self.draw_object(rng, clause, letter, use)
        self.add_combinations(clause, use.name, phrase)
        place, english_place = rng.pick(use.places) if use.places and rng.chance(0.35) else ("", "")
        companion, with_companion = self.companion(rng, clause) if use.places else ("", "")
        clause.before = join(companion, place, particle(phrase.text, "object"), phrase.measure)
        english_object = (
            phrase.generic if letter == "s" else phrase.english if "t" in use.modes else phrase.indefinite
        )
        clause.rest = join(english_object, with_companion, english_place)
        return clause

    def recipient(self, rng: Rng, subject: Phrase) -> Phrase:
        """Draw a recipient; not an honorific one if the subject is honorific."""
        while True:
            kind = rng.pick(("I", "name", "name", "person", "kin", "parent", "senior"))
            if kind == "I":
                chosen = FIRST_PERSON
            elif kind == "name":
                chosen = rng.pick(self.names)
            elif kind == "senior":
                determiner = rng.pick(("이", "그", "우리"))
                chosen = self.determined_phrase(rng, rng.pick(self.people["senior"]), determiner, 0.0)
            else:
                chosen = self.definite_phrase(rng, rng.pick(self.people[kind]))
            same_person = chosen.head == subject.head or owned_by(chosen, subject)
            both_first_person = {chosen.pronoun, subject.pronoun} <= {"I", "we"}
            if not same_person and not both_first_person and not (chosen.honorific and subject.honorific):
                return chosen

    def recipient_clause(self, rng: Rng, allowed: str = "higpfms", subject: Phrase | None = None) -> Clause:
        """Draw a clause with a recipient and an object: 에게 주다, or 께 드리다 for an honorific recipient."""
        use = self.use(rng, self.recipient_uses, allowed)
        clause, letter = self.start_clause(rng, use, allowed, subject)
        recipient = self.recipient(rng, clause.subject)
        phrase = self.draw_object(rng, clause, letter, use)
        self.add_combinations(clause, use.name, recipient)
        self.add_combinations(clause, use.name, phrase)
        if recipient.honorific and use.senior:
            clause.verb = use.senior
        korean_recipient = f"{recipient.text}{'께' if recipient.honorific else '에게'}"
        clause.before = join(korean_recipient, particle(phrase.text, "object"), phrase.measure)
        clause.rest = join(recipient.indefinite, phrase.indefinite)
        return clause

    def place_clause(self, rng: Rng, allowed: str = "higpfms", subject: Phrase | None = None) -> Clause:
        """Draw a clause with a place, sometimes with a vehicle, a duration or a companion."""
        use = self.use(rng, self.place_uses, allowed)
        clause, letter = self.start_clause(rng, use, allowed, subject)
        place, english_place = rng.pick(use.places)
        clause.combinations.append(combine(use.name, place))
        companion, with_companion = self.companion(rng, clause)
        adverbial, english_adverbial = "", ""
        if use.name in MOVING and rng.chance(0.35):
            vehicle, english_adverbial = rng.pick(VEHICLES)
            adverbial = directional(vehicle)
        elif letter == "p" and use.name not in MOVING and rng.chance(0.3):
            hours = rng.pick(HOURS)
            adverbial, english_adverbial = (
                f"{native_numeral(hours)} 시간 동안",
                f"for {english.number(hours)} hours",
            )
        if use.name in MOVING:
            clause.before, clause.rest = (
                join(companion, adverbial, place),
                join(english_place, with_companion, english_adverbial),
            )
        else:
            clause.before, clause.rest = (
                join(companion, place, adverbial),
                join(with_companion, english_place, english_adverbial),
            )
        return clause

    def any_clause(self, rng: Rng, allowed: str = "higpfms", subject: Phrase | None = None) -> Clause:
        """Draw a clause of any kind."""
        return rng.pick_weighted(self.clauses)(rng, allowed, subject)
