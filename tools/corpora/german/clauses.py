"""German clauses: the verb in second place, first or last, the time, and the English of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.corpora import english
from tools.corpora.choice import Rng, Weighted, combine, join
from tools.corpora.clause import NO_TIME, Time, fronted_english, question_english, statement_english
from tools.corpora.english import MONTHS, WEEKDAYS
from tools.corpora.german.words import Phrase, Verb, number, ordinal

__all__ = [
    "NOW",
    "Clause",
    "clock_times",
    "dates",
    "fronted",
    "inverted",
    "question",
    "statement",
    "times",
    "verb_last",
]

MONTH_NAMES = (
    *("Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August"),
    *("September", "Oktober", "November", "Dezember"),
)
DAY_NAMES = ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag")
MONTH_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

FINITE = {  # by person: ich, du, er, wir
    "haben": ("habe", "hast", "hat", "haben"),
    "sein": ("bin", "bist", "ist", "sind"),
    "future": ("werde", "wirst", "wird", "werden"),
    "can": ("kann", "kannst", "kann", "können"),
    "must": ("muss", "musst", "muss", "müssen"),
    "may": ("darf", "darfst", "darf", "dürfen"),
    "want": ("will", "willst", "will", "wollen"),
    "would like": ("möchte", "möchtest", "möchte", "möchten"),
}


NOW = Time("gerade", "", fronts=False)  # the English progressive says it

PAST = (
    *(Time("gestern", "yesterday"), Time("gestern Abend", "yesterday evening")),
    *(Time("vorgestern", "the day before yesterday"), Time("heute Morgen", "this morning")),
    *(Time("letzte Woche", "last week"), Time("letzten Monat", "last month"), Time("letztes Jahr", "last year")),
)
FUTURE = (
    *(Time("morgen", "tomorrow"), Time("morgen Abend", "tomorrow evening")),
    *(Time("übermorgen", "the day after tomorrow"), Time("heute Abend", "this evening")),
    *(Time("nächste Woche", "next week"), Time("nächsten Monat", "next month"), Time("nächstes Jahr", "next year")),
)
HABIT = (
    *(Time("jeden Tag", "every day"), Time("jeden Morgen", "every morning"), Time("jeden Abend", "every evening")),
    *(Time("jede Woche", "every week"), Time("am Wochenende", "at the weekend")),
    *(Time(f"jeden {day}", f"every {name}") for day, name in zip(DAY_NAMES, WEEKDAYS, strict=True)),
)
FREQUENCY = (
    *(Time("oft", "often", False, True), Time("immer", "always", False, True)),
    *(Time("manchmal", "sometimes", False, True), Time("nie", "never", False, True)),
)
ON_DAY = tuple(Time(f"am {day}", f"on {name}") for day, name in zip(DAY_NAMES, WEEKDAYS, strict=True))
UNITS = (("Tagen", "days"), ("Wochen", "weeks"), ("Monaten", "months"), ("Jahren", "years"))
SPANS = [(f"{number(n)} {de}", f"{english.number(n)} {en}") for n in range(2, 11) for de, en in UNITS]
AGO = tuple(Time(f"vor {de}", f"{en} ago") for de, en in SPANS)
HENCE = tuple(Time(f"in {de}", f"in {en}") for de, en in SPANS)
IN_MONTH = tuple(Time(f"im {month}", f"in {name}") for month, name in zip(MONTH_NAMES, MONTHS, strict=True))


def clock_times() -> tuple[Time, ...]:
    """The times of day to five minutes that are said with Uhr, halb, Viertel, nach and vor."""
    found = []
    for hour in range(1, 13):
        name, following = english.number(hour), english.number(hour % 12 + 1)
        past, to = ("eins" if hour == 1 else number(hour)), ("eins" if hour == 12 else number(hour + 1))
        found.append(Time(f"um {'ein' if hour == 1 else past} Uhr", f"at {name} o'clock"))
        found.append(Time(f"um halb {to}", f"at half past {name}"))
        for german, minutes in (("Viertel", "a quarter"), ("zehn", "ten"), ("zwanzig", "twenty")):
            found.append(Time(f"um {german} nach {past}", f"at {minutes} past {name}"))
            found.append(Time(f"um {german} vor {to}", f"at {minutes} to {following}"))
    return tuple(found)


def dates() -> tuple[Time, ...]:
    """Every day of the year in words: am dritten Mai."""
    return tuple(
        Time(
            f"am {ordinal(day)} {month}",
            f"on the {english.ordinal(day)} of {name}",
            combination=combine(ordinal(day), month),
        )
        for month, name, length in zip(MONTH_NAMES, MONTHS, MONTH_LENGTHS, strict=True)
        for day in range(1, length + 1)
    )


CLOCK, DATES = clock_times(), dates()
DAYS_AGO, DAYS_HENCE = AGO[:: len(UNITS)], HENCE[:: len(UNITS)]
TIMES: dict[str, Weighted[tuple[Time, ...]]] = {
    "past": Weighted({PAST: 8, AGO: 3, ON_DAY: 3, IN_MONTH: 2, CLOCK: 2, DATES: 2}),
    "future": Weighted({FUTURE: 8, HENCE: 2, ON_DAY: 3, IN_MONTH: 2, CLOCK: 2, DATES: 2}),
    "lately": Weighted({PAST[:4]: 8, DAYS_AGO: 2, ON_DAY: 4, CLOCK: 2, DATES: 2}),
    "soon": Weighted({FUTURE[:4]: 8, DAYS_HENCE: 2, ON_DAY: 4, CLOCK: 2, DATES: 2}),
    "habit": Weighted({HABIT: 5, FREQUENCY: 4}),
}


def times(kind: str) -> Weighted[tuple[Time, ...]]:
    """The times of a kind, in groups: past, lately, future, soon, habit."""
    return TIMES[kind]


@dataclass(slots=True)
class Clause:
    """A clause before its words are put in order.

    Attributes:
        mode: present, progressive, past, future, can, must, may, want or would like.
        early, late: German between the verb and its last part: before the time (pronouns, datives), and after it.
        rest: what follows the English verb.
        combinations: the lexical choices that meet in it, the time aside.
    """

    subject: Phrase
    verb: Verb
    mode: str
    time: Time = NO_TIME
    early: str = ""
    late: str = ""
    rest: str = ""
    negative: bool = False
    combinations: list[str] = field(default_factory=list)

    def met(self) -> list[str]:
        """All lexical choices that meet in it."""
        return [*self.combinations, self.time.combination] if self.time.combination else self.combinations


def finite(verb: Verb, person: int) -> str:
    """The present without the separable prefix: ich kaufe, er kauft, wir kaufen (du is not used in the present)."""
    return (verb.first, "", verb.third, verb.infinitive.removeprefix(verb.prefix))[person]


def brackets(clause: Clause) -> tuple[str, str]:
    """The two parts of the verb in a main clause: (macht, auf), (hat, aufgemacht), (will, aufmachen)."""
    verb, person = clause.verb, clause.subject.person
    if clause.mode in ("present", "progressive"):
        return finite(verb, person), verb.prefix
    if clause.mode == "past":
        return FINITE[verb.auxiliary][person], verb.participle
    return FINITE[clause.mode][person], verb.infinitive


def statement(clause: Clause) -> tuple[str, str]:
    """Subject first: Anna hat gestern den Ball gesucht | Anna looked for the ball yesterday."""
    first, last = brackets(clause)
    german = join(clause.subject.nominative, first, clause.early, clause.time.foreign, clause.late, last)
    return german, statement_english(clause)


def fronted(clause: Clause) -> tuple[str, str]:
    """Time first: Gestern hat Anna den Ball gesucht | yesterday Anna looked for the ball."""
    first, last = brackets(clause)
    german = join(clause.time.foreign, first, clause.subject.nominative, clause.early, clause.late, last)
    return german, fronted_english(clause)


def inverted(clause: Clause) -> tuple[str, str]:
    """What follows a clause in first place: hat Anna gestern den Ball gesucht | Anna looked for the ball ..."""
    first, last = brackets(clause)
    german = join(first, clause.subject.nominative, clause.early, clause.time.foreign, clause.late, last)
    return german, statement_english(clause)


def question(clause: Clause) -> tuple[str, str]:
    """Verb first: hat Anna gestern den Ball gesucht | did Anna look for the ball yesterday."""
    german, _ = inverted(clause)
    return german, question_english(clause)


def verb_last(clause: Clause) -> tuple[str, str]:
    """After a conjunction: Anna gestern den Ball gesucht hat | Anna looked for the ball yesterday."""
    first, last = brackets(clause)
    end = last + first if clause.mode in ("present", "progressive") else f"{last} {first}"
    german = join(clause.subject.nominative, clause.early, clause.time.foreign, clause.late, end)
    return german, statement_english(clause)


def draw_time(rng: Rng, kind: str) -> Time:
    """A time of a kind, as in `times`."""
    return rng.pick(rng.weigh(times(kind)))
