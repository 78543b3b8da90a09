"""German clauses: the verb in second place, first or last, the time, and the English of each."""

from __future__ import annotations

from dataclasses import dataclass

from tools.corpora import english
from tools.corpora.choice import combine, join, read_lexicon
from tools.corpora.clause import Clause as BaseClause
from tools.corpora.clause import Time, Times, fronted_english, question_english, statement_english
from tools.corpora.german.words import Phrase, Verb, number, ordinal

__all__ = ["NOW", "TIMES", "Clause", "fronted", "inverted", "question", "statement", "verb_last"]

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

UNITS = (("Tagen", "days"), ("Wochen", "weeks"), ("Monaten", "months"), ("Jahren", "years"))
SPANS = [(f"{number(n)} {de}", f"{english.number(n)} {en}") for n in range(2, 11) for de, en in UNITS]


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


def date(month: str, day: int) -> tuple[str, str]:
    """A day of the year in words: am dritten Mai; and its combination."""
    return f"am {ordinal(day)} {month}", combine(ordinal(day), month)


TIMES = Times(read_lexicon("german")["times"], SPANS, SPANS[:: len(UNITS)], clock_times(), date)


@dataclass(slots=True)
class Clause(BaseClause[Phrase, Verb]):
    """A German clause before its words are put in order.

    Attributes:
        mode: present, progressive, past, future, can, must, may, want or would like.
        early, late: German between the verb and its last part: before the time (pronouns, datives), and after it.
    """

    early: str = ""
    late: str = ""


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
