"""Drawing Korean clauses: who does what to whom, in which mode, when and where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tools.corpora import english
from tools.corpora.choice import Rng, Weighted, combine, join
from tools.corpora.clause import NO_TIME, Time
from tools.corpora.korean.clauses import NOW, TIMES, Clause
from tools.corpora.korean.hangul import Predicate, directional, native, particle
from tools.corpora.korean.phrases import ANYBODY, COMMON, COMPANIONS, I_MYSELF, Phrases, own
from tools.corpora.korean.words import Lexicon, Noun, Phrase

__all__ = ["Drawing", "Use"]

LETTERS = {"h": 9.0, "i": 9.0, "g": 6.0, "p": 6.0, "f": 3.0, "m": 4.0, "s": 3.0}
MODES = {"h": "present", "i": "present", "g": "progressive", "p": "past", "f": "future", "s": "present"}
MODALS = ("can", "want")
MORE_MODALS = ("can", "must", "must", "want", "intend", "intend")
DENIABLE = ("past", "future", "can")
MOVING = ("go", "come", "arrive")
HOURS = range(2, 6)
VEHICLES = (
    *(("버스", "by bus"), ("지하철", "by underground"), ("기차", "by train"), ("택시", "by taxi")),
    *(("자전거", "by bicycle"), ("자동차", "by car")),
)


@dataclass(frozen=True, slots=True)
class Use:
    """What a verb is used with.

    Attributes:
        name: the verb's name in the lexicon.
        modes: letters of the modes it is used in, as in the lexicon.
        nouns: its objects; places: (Korean, English) where or where to.
        senior: the verb for somebody who is looked up to, if it has another.
    """

    name: str
    verb: Predicate
    modes: str
    nouns: tuple[Noun, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    senior: Predicate | None = None


def unowned(nouns: tuple[Noun, ...], modes: str) -> tuple[Noun, ...]:
    """The nouns, without possessives in front when the verb makes or buys them (mode d)."""
    if "d" not in modes:
        return nouns
    return tuple(
        replace(noun, determiners=tuple(word for word in noun.determiners if word in ("-", "이", "그")))
        for noun in nouns
    )


@cache
def letters(modes: str, allowed: str) -> Weighted[str]:
    """The modes of a use that are allowed, with their frequencies."""
    return Weighted({letter: LETTERS[letter] for letter in modes if letter in allowed})


def weighted(uses: list[Use]) -> Weighted[Use]:
    """The uses, each verb as frequent as the others, those of every day (modes h and i) twice as frequent."""
    names = [use.name for use in uses]
    return Weighted(
        {use: (2 if "i" in use.modes or "h" in use.modes else 1) / names.count(use.name) for use in uses}
    )


class Drawing(Phrases):
    """Draws clauses."""

    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__(lexicon)
        uses, verbs, resolve = lexicon.tables["uses"], lexicon.verbs, lexicon.resolve
        self.places: dict[str, tuple[tuple[str, str], ...]] = {
            group: tuple((korean, said) for korean, said in rows)
            for group, rows in {**lexicon.tables["places"], "": []}.items()
        }
        objects = [
            Use(name, verbs[name], modes, unowned(resolve(nouns), modes), self.places[places])
            for name, nouns, modes, places in uses["object"]
        ]
        self.object_uses = weighted(objects)
        sequential = lexicon.tables["said"]["sequential"]
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

    def started(self, rng: Rng, use: Use, allowed: str, subject: Phrase | None) -> tuple[Clause, str]:
        """Subject, mode and time of a clause, and the letter of its mode."""
        letter = rng.weigh(letters(use.modes, allowed))
        said = use.verb.english
        if subject is None:
            subject = self.subject(rng, ANYBODY if "r" in use.modes else COMMON)
        modals = MORE_MODALS if "e" in use.modes and not subject.honorific else MODALS
        mode = rng.pick(modals) if letter == "m" else MODES[letter]
        if mode == "present" and said.past == said.base and subject.person != 2:  # "I read" would be both
            letter, mode = "p", "past"
        clause = Clause(subject, use.verb, mode, self.time(rng, letter, "q" in use.modes))
        if (mode in DENIABLE or letter == "s") and "n" not in use.modes and rng.chance(0.15):
            clause.negative = True
            if mode == "past" and rng.chance(0.35):
                clause.mode = "could"
        if subject.head:
            clause.combinations += [combine(subject.head, use.name), *subject.combinations]
        return clause, letter

    def time(self, rng: Rng, letter: str, quick: bool) -> Time:
        """A time that fits a mode, a near one for what is over soon."""
        if letter == "g":
            return NOW if rng.chance(0.5) else NO_TIME
        return TIMES.draw(rng, letter, quick, 0.5)

    def use(self, rng: Rng, uses: Weighted[Use], allowed: str) -> Use:
        """A use that has one of the allowed modes."""
        while True:
            use = rng.weigh(uses)
            if any(letter in allowed for letter in use.modes):
                return use

    def object_use(self, rng: Rng, allowed: str) -> Use:
        """A verb with its objects; in many cases the object comes first, so that no noun is rare."""
        uses = rng.pick(self.uses_of_noun) if rng.chance(0.55) else []
        fitting = [use for use in uses if any(letter in allowed for letter in use.modes)]
        return rng.pick(fitting) if fitting else self.use(rng, self.object_uses, allowed)

    def thing(self, rng: Rng, clause: Clause, letter: str, use: Use) -> Phrase:
        """A noun phrase that the clause is about."""
        noun = rng.pick(use.nouns)
        if letter == "i":
            return self.new_phrase(rng, noun)
        if letter == "s":
            return self.described(rng, noun, "-", 0.3)
        known = clause.negative or "t" in use.modes or "o" in use.modes
        phrase = self.known_phrase(rng, noun) if known else self.any_phrase(rng, noun)
        return self.thing(rng, clause, letter, use) if own(phrase, clause.subject) else phrase

    def met(self, clause: Clause, name: str, phrase: Phrase) -> None:
        """Note that a noun phrase has joined a clause."""
        if phrase.head:
            clause.combinations += [combine(name, phrase.head), *phrase.combinations]

    def companion(self, rng: Rng, clause: Clause) -> tuple[str, str]:
        """In some cases somebody who takes part: 제 친구와 함께 | with my friend."""
        subject = clause.subject
        if subject.person == 3 or clause.negative or not rng.chance(0.1):
            return "", ""
        other = self.subject(rng, COMPANIONS)
        if other.head == subject.head or own(other, subject):
            return "", ""
        clause.combinations += other.combinations
        return f"{particle(other.text, 'with')} 함께", f"with {other.english}"

    def object_clause(self, rng: Rng, allowed: str = "higpfms", subject: Phrase | None = None) -> Clause:
        """Somebody does something to something, perhaps somewhere and with somebody."""
        return self.clause_of(rng, self.object_use(rng, allowed), allowed, subject)

    def sequential_clause(self, rng: Rng, allowed: str, subject: Phrase) -> Clause:
        """As an object clause, of something that is done before or after something else."""
        return self.clause_of(rng, rng.weigh(self.sequential_uses), allowed, subject)

    def clause_of(self, rng: Rng, use: Use, allowed: str, subject: Phrase | None) -> Clause:
        """A clause of a verb with an object."""
        clause, letter = self.started(rng, use, allowed, subject)
        phrase = self.thing(rng, clause, letter, use)
        self.met(clause, use.name, phrase)
        place, where = rng.pick(use.places) if use.places and rng.chance(0.35) else ("", "")
        friend, together = self.companion(rng, clause) if use.places else ("", "")
        clause.before = join(friend, place, particle(phrase.text, "object"), phrase.measure)
        said = phrase.generic if letter == "s" else phrase.english if "t" in use.modes else phrase.indefinite
        clause.rest = join(said, together, where)
        return clause

    def receiver(self, rng: Rng, subject: Phrase) -> Phrase:
        """Somebody who is given something; nobody to look up to when the giver is."""
        while True:
            kind = rng.pick(("I", "name", "name", "person", "kin", "parent", "senior"))
            if kind == "I":
                chosen = I_MYSELF
            elif kind == "name":
                chosen = rng.pick(self.names)
            elif kind == "senior":
                determiner = rng.pick(("이", "그", "우리"))
                chosen = self.described(rng, rng.pick(self.people["senior"]), determiner, 0.0)
            else:
                chosen = self.known_phrase(rng, rng.pick(self.people[kind]))
            same = chosen.head == subject.head or own(chosen, subject)
            ours = {chosen.pronoun, subject.pronoun} <= {"I", "we"}
            if not same and not ours and not (chosen.honorific and subject.honorific):
                return chosen

    def recipient_clause(self, rng: Rng, allowed: str = "higpfms", subject: Phrase | None = None) -> Clause:
        """Somebody gives somebody something: 에게 주다, or 께 드리다 for those who are looked up to."""
        use = self.use(rng, self.recipient_uses, allowed)
        clause, letter = self.started(rng, use, allowed, subject)
        receiver = self.receiver(rng, clause.subject)
        phrase = self.thing(rng, clause, letter, use)
        self.met(clause, use.name, receiver)
        self.met(clause, use.name, phrase)
        if receiver.honorific and use.senior:
            clause.verb = use.senior
        to = f"{receiver.text}{'께' if receiver.honorific else '에게'}"
        clause.before = join(to, particle(phrase.text, "object"), phrase.measure)
        clause.rest = join(receiver.indefinite, phrase.indefinite)
        return clause

    def place_clause(self, rng: Rng, allowed: str = "higpfms", subject: Phrase | None = None) -> Clause:
        """Somebody goes somewhere, or does something somewhere, perhaps by bus, for two hours, with somebody."""
        use = self.use(rng, self.place_uses, allowed)
        clause, letter = self.started(rng, use, allowed, subject)
        place, where = rng.pick(use.places)
        clause.combinations.append(combine(use.name, place))
        friend, together = self.companion(rng, clause)
        way, how = "", ""
        if use.name in MOVING and rng.chance(0.35):
            vehicle, how = rng.pick(VEHICLES)
            way = directional(vehicle)
        elif letter == "p" and use.name not in MOVING and rng.chance(0.3):
            hours = rng.pick(HOURS)
            way, how = f"{native(hours)} 시간 동안", f"for {english.number(hours)} hours"
        if use.name in MOVING:
            clause.before, clause.rest = join(friend, way, place), join(where, together, how)
        else:
            clause.before, clause.rest = join(friend, place, way), join(together, where, how)
        return clause

    def any_clause(self, rng: Rng, allowed: str = "higpfms", subject: Phrase | None = None) -> Clause:
        """A clause of any kind."""
        return rng.weigh(self.clauses)(rng, allowed, subject)
