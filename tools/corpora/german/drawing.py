"""Drawing German clauses: who does what to whom, in which mode, when and where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tools.corpora.choice import Rng, Weighted, combine, join
from tools.corpora.clause import Time
from tools.corpora.german.clauses import NOW, TIMES, Clause
from tools.corpora.german.phrases import OBJECTIVE, PRONOUNS, Phrases
from tools.corpora.german.words import Lexicon, Noun, Phrase, Verb

__all__ = ["Drawing", "Use"]

EVERY = "higpfmsk"  # the modes of a statement
LETTERS = {"h": 7.0, "i": 7.0, "g": 5.0, "p": 5.0, "f": 2.0, "m": 3.0, "s": 3.0, "k": 3.0}
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
    """What a verb is used with.

    Attributes:
        nouns: its objects; places: (German, English) where or where to; preposition: (German, case, English).
        modes: letters of the modes it is used in, as in the lexicon.
        who: human, animal or pet.
    """

    verb: Verb
    modes: str
    who: str = "human"
    nouns: tuple[Noun, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    preposition: tuple[str, str, str] = ("", "", "")


@cache
def letters(modes: str, allowed: str) -> Weighted[str]:
    """The modes of a use that are allowed, with their frequencies."""
    return Weighted({letter: LETTERS[letter] for letter in modes if letter in allowed})


def weighted(uses: list[Use]) -> Weighted[Use]:
    """The uses, each verb as frequent as the others, those of every day (mode i) twice as frequent."""
    verbs = [use.verb.infinitive for use in uses]
    return Weighted({use: (2 if "i" in use.modes else 1) / verbs.count(use.verb.infinitive) for use in uses})


class Drawing(Phrases):
    """Draws clauses."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        tables = lexicon.tables
        uses, places = tables["uses"], {name: tuple(map(tuple, rows)) for name, rows in tables["places"].items()}
        verb, resolve = lexicon.verbs, lexicon.resolve
        self.places: dict[str, tuple[tuple[str, str], ...]] = places
        objects = [Use(verb[v], modes, who, resolve(nouns)) for v, nouns, modes, who in uses["object"]]
        self.object_uses = weighted(objects)
        by_noun: dict[str, list[Use]] = {}
        for use in objects:
            for noun in use.nouns if use.who == "human" else ():
                by_noun.setdefault(noun.singular, []).append(replace(use, nouns=(noun,)))
        self.uses_of_noun = list(by_noun.values())
        self.recipient_uses = weighted(
            [Use(verb[v], modes, nouns=resolve(nouns)) for v, nouns, modes in uses["recipient"]]
        )
        self.prepositional_uses = weighted(
            [
                Use(verb[v], modes, nouns=resolve(nouns), preposition=(german, case, words))
                for v, german, case, words, nouns, modes in uses["prepositional"]
            ]
        )
        self.place_uses = weighted(
            [
                Use(verb[v], modes, who, places=sum((places[name] for name in names.split()), ()))
                for v, names, modes, who in uses["place"]
            ]
        )
        said = tables["said"]
        self.making = frozenset(said["making"])
        self.unmade = frozenset(combine(word, noun) for word in said["unmade"] for noun in lexicon.nouns)
        self.clauses = Weighted(
            {
                self.object_clause: 58,
                self.recipient_clause: 10,
                self.prepositional_clause: 12,
                self.place_clause: 20,
            }
        )

    def started(
        self, rng: Rng, use: Use, allowed: str = EVERY, subject: Phrase | None = None
    ) -> tuple[Clause, str]:
        """Subject, mode and time of a clause, and the letter of its mode."""
        letter = rng.weigh(letters(use.modes, allowed))
        mode = rng.pick(MODALS) if letter == "m" else MODES[letter]
        present = mode in ("present", "progressive")
        persons = self.persons(use) if present else "0123"
        if subject is None:
            often = present and "e" in use.modes and rng.chance(0.3)
            subject = PRONOUNS[0] if often else self.subject(rng, use.who, persons)
        elif str(subject.person) not in persons:
            letter, mode = "p", "past"
        clause = Clause(subject, use.verb, mode, self.time(rng, letter, "q" in use.modes))
        clause.negative = letter in "pfs" and rng.chance(0.13)
        if subject.head:
            clause.combinations += [combine(subject.head, use.verb.infinitive), *subject.combinations]
        return clause, letter

    def persons(self, use: Use) -> str:
        """The grammatical persons in which a verb is used in the present."""
        verb = use.verb
        if verb.prefix or verb.english.past == verb.english.base:  # "we read" would be past as well
            return "2"
        return "023" if "e" in use.modes else "23"

    def time(self, rng: Rng, letter: str, quick: bool) -> Time:
        """A time that fits a mode, a near one for what is over soon."""
        if letter == "g":
            return NOW
        return TIMES.draw(rng, letter, quick, 0.4)

    def met(self, clause: Clause, phrase: Phrase) -> None:
        """Note that a noun phrase has joined a clause."""
        if phrase.head:
            clause.combinations += [combine(clause.verb.infinitive, phrase.head), *phrase.combinations]

    def thing(self, rng: Rng, clause: Clause, letter: str, nouns: tuple[Noun, ...]) -> Phrase:
        """A noun phrase that the clause is about."""
        noun = rng.pick(nouns)
        if clause.negative:
            phrase = self.denied_phrase(rng, noun, clause.subject)
        elif letter == "i":
            phrase = self.new_phrase(rng, noun)
        elif letter == "k":
            phrase = self.loved_phrase(rng, noun, clause.subject)
        else:
            phrase = self.any_phrase(rng, noun, clause.subject)
        if clause.verb.infinitive in self.making and not self.unmade.isdisjoint(phrase.combinations):
            return self.thing(rng, clause, letter, nouns)
        self.met(clause, phrase)
        return phrase

    def someone(self, rng: Rng, subject: Phrase) -> int | None:
        """In some cases a pronoun for an object, as its place in PRONOUNS; never the subject itself."""
        if not rng.chance(0.2):
            return None
        index = rng.pick(range(len(PRONOUNS)))
        ours = {PRONOUNS[index].english, subject.english} <= {"I", "we"}
        return None if ours or PRONOUNS[index] is subject else index

    def use(self, rng: Rng, uses: Weighted[Use], allowed: str, subject: Phrase | None) -> Use:
        """A use that has one of the allowed modes and fits the subject, if that is given."""
        while True:
            use = rng.weigh(uses)
            if any(letter in allowed for letter in use.modes) and (subject is None or use.who == "human"):
                return use

    def object_use(self, rng: Rng, allowed: str, subject: Phrase | None = None) -> Use:
        """A verb with its objects; in half of the cases the object comes first, so that no noun is rare."""
        uses = rng.pick(self.uses_of_noun) if rng.chance(0.6) else []
        fitting = [use for use in uses if any(letter in allowed for letter in use.modes)]
        return rng.pick(fitting) if fitting else self.use(rng, self.object_uses, allowed, subject)

    def object_clause(self, rng: Rng, allowed: str = EVERY, subject: Phrase | None = None) -> Clause:
        """Somebody does something to somebody or something."""
        use = self.object_use(rng, allowed, subject)
        clause, letter = self.started(rng, use, allowed, subject)
        if use.nouns[0].kind in ("kin", "person") and use.who == "human":
            index = self.someone(rng, clause.subject)
            if index is not None:
                clause.early, clause.rest = PRONOUNS[index].accusative, OBJECTIVE[index]
                clause.late = "nicht" if clause.negative else ""
                return clause
        phrase = self.thing(rng, clause, letter, use.nouns)
        denial = "nicht" if clause.negative and phrase.definite else ""
        clause.late, clause.rest = join(phrase.accusative, denial), phrase.english
        return clause

    def recipient_clause(self, rng: Rng, allowed: str = EVERY, subject: Phrase | None = None) -> Clause:
        """Somebody gives somebody something."""
        use = self.use(rng, self.recipient_uses, allowed, subject)
        clause, letter = self.started(rng, use, allowed, subject)
        index = self.someone(rng, clause.subject)
        if index is None:
            noun = rng.pick(self.people["kin" if rng.chance(0.5) else "person"])
            receiver = self.known_phrase(rng, noun, clause.subject)
            self.met(clause, receiver)
            clause.early, clause.rest = receiver.dative, receiver.english
        else:
            clause.early, clause.rest = PRONOUNS[index].dative, OBJECTIVE[index]
        phrase = self.thing(rng, clause, letter, use.nouns)
        denial = "nicht" if clause.negative and phrase.definite else ""
        clause.late, clause.rest = join(phrase.accusative, denial), join(clause.rest, phrase.english)
        return clause

    def prepositional_clause(self, rng: Rng, allowed: str = EVERY, subject: Phrase | None = None) -> Clause:
        """Somebody waits for somebody, helps somebody (a dative in German)."""
        use = self.use(rng, self.prepositional_uses, allowed, subject)
        german, case, words = use.preposition
        clause, _ = self.started(rng, use, allowed, subject)
        denial = "nicht" if clause.negative else ""
        index = self.someone(rng, clause.subject) if use.nouns[0].kind in ("person", "kin") else None
        if index is not None:
            phrase, said = PRONOUNS[index], OBJECTIVE[index]
        else:
            phrase = self.known_phrase(rng, rng.pick(use.nouns), clause.subject)
            said = phrase.english
            self.met(clause, phrase)
        form = phrase.dative if case == "dative" else phrase.accusative
        clause.late = join(denial, german, form) if german else join(form, denial)
        if not german and index is not None:
            clause.early, clause.late = form, denial
        clause.rest = join(words, said)
        return clause

    def place_clause(self, rng: Rng, allowed: str = EVERY, subject: Phrase | None = None) -> Clause:
        """Somebody goes, stays or works somewhere."""
        use = self.use(rng, self.place_uses, allowed, subject)
        clause, _ = self.started(rng, use, allowed, subject)
        place, said = rng.pick(use.places)
        clause.combinations.append(combine(use.verb.infinitive, place))
        clause.late, clause.rest = join("nicht" if clause.negative else "", place), said
        return clause

    def any_clause(self, rng: Rng, allowed: str = EVERY, subject: Phrase | None = None) -> Clause:
        """A clause of any kind."""
        return rng.weigh(self.clauses)(rng, allowed, subject)
