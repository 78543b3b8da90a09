"""German clauses with the verb in second, first or last position, and their English."""

from __future__ import annotations

from dataclasses import dataclass

from tools.corpora import english
from tools.corpora.choice import combine, join, read_lexicon
from tools.corpora.clause import Clause as BaseClause
from tools.corpora.clause import Time, Times, fronted_english, question_english, statement_english
from tools.corpora.german.words import Phrase, Verb, number, ordinal

__all__ = ["NOW", "TIMES", "Clause", "fronted", "inverted", "question", "statement", "verb_last"]

FINITE = {  # finite forms by person: ich, du, er, wir
    "haben": ("habe", "hast", "hat", "haben"),
    "sein": ("bin", "bist", "ist", "sind"),
    "future": ("werde", "wirst", "wird", "werden"),
    "can": ("kann", "kannst", "kann", "können"),
    "must": ("muss", "musst", "muss", "müssen"),
    "may": ("darf", "darfst", "darf", "dürfen"),
    "want": ("will", "willst", "will", "wollen"),
    "would like": ("möchte", "möchtest", "möchte", "möchten"),
}


NOW = Time("gerade", "", fronts=False)  # expressed by the English progressive

UNITS = (("Tagen", "days"), ("Wochen", "weeks"), ("Monaten", "months"), ("Jahren", "years"))
SPANS = [(f"{number(n)} {de}", f"{english.number(n)} {en}") for n in range(2, 11) for de, en in UNITS]


def clock_times() -> tuple[Time, ...]:
    """Return the times of day with Uhr, halb, Viertel, nach and vor."""
    times = []
    for hour in range(1, 13):
        english_hour, next_english_hour = english.number(hour), english.number(hour % 12 + 1)
        german_hour, next_german_hour = (
            ("eins" if hour == 1 else number(hour)),
            ("eins" if hour == 12 else number(hour + 1)),
        )
        times.append(Time(f"um {'ein' if hour == 1 else german_hour} Uhr", f"at {english_hour} o'clock"))
        times.append(Time(f"um halb {next_german_hour}", f"at half past {english_hour}"))
        for german, minutes in (("Viertel", "a quarter"), ("zehn", "ten"), ("zwanzig", "twenty")):
            times.append(Time(f"um {german} nach {german_hour}", f"at {minutes} past {english_hour}"))
            times.append(Time(f"um {german} vor {next_german_hour}", f"at {minutes} to {next_english_hour}"))
    return tuple(times)


def date(month: str, day: int) -> tuple[str, str]:
    """Return a day of the year in words, am dritten Mai, and its combination."""
    return f"am {ordinal(day)} {month}", combine(ordinal(day), month)


TIMES = Times(read_lexicon("german")["times"], SPANS, SPANS[:: len(UNITS)], clock_times(), date)


@dataclass(slots=True)
class Clause(BaseClause[Phrase, Verb]):
    """A German clause before its words are put in order.

    Attributes:
        mode: present, progressive, past, future, can, must, may, want or would like.
        early, late: German words between the two verb parts: before the time (pronouns, datives) and after it.
    """

    early: str = ""
    late: str = ""


def finite(verb: Verb, person: int) -> str:
    """Return the present form without the separable prefix: ich kaufe, er kauft, wir kaufen (du is not used)."""
    return (verb.first, "", verb.third, verb.infinitive.removeprefix(verb.prefix))[person]


def verb_parts(clause: Clause) -> tuple[str, str]:
    """Return the two verb parts of a main clause: (macht, auf), (hat, aufgemacht), (will, aufmachen)."""
    verb, person = clause.verb, clause.subject.person
    if clause.mode in ("present", "progressive"):
        return finite(verb, person), verb.prefix
    if clause.mode == "past":
        return FINITE[verb.auxiliary][person], verb.participle
    return FINITE[clause.mode][person], verb.infinitive


def statement(clause: Clause) -> tuple[str, str]:
    """Put the subject first: Anna hat gestern den Ball gesucht | Anna looked for the ball yesterday."""
    first, last = verb_parts(clause)
    german = join(clause.subject.nominative, first, clause.early, clause.time.foreign, clause.late, last)
    return german, statement_english(clause)


def fronted(clause: Clause) -> tuple[str, str]:
    """Put the time first: Gestern hat Anna den Ball gesucht | yesterday Anna looked for the ball."""
    first, last = verb_parts(clause)
    german = join(clause.time.foreign, first, clause.subject.nominative, clause.early, clause.late, last)
    return german, fronted_english(clause)


def inverted(clause: Clause) -> tuple[str, str]:
    """Put the verb first, after another clause: hat Anna gestern den Ball gesucht | Anna looked for the ball ..."""
    first, last = verb_parts(clause)
    german = join(first, clause.subject.nominative, clause.early, clause.time.foreign, clause.late, last)
    return german, statement_english(clause)


def question(clause: Clause) -> tuple[str, str]:
    """Make a question, verb first: hat Anna gestern den Ball gesucht | did Anna look for the ball yesterday."""
    german, _ = inverted(clause)
    return german, question_english(clause)


def verb_last(clause: Clause) -> tuple[str, str]:
    """Put the verb last, after a conjunction: Anna den Ball gesucht hat | Anna looked for the ball."""
    first, last = verb_parts(clause)
    ending = last + first if clause.mode in ("present", "progressive") else f"{last} {first}"
    german = join(clause.subject.nominative, clause.early, clause.time.foreign, clause.late, ending)
    return german, statement_english(clause)
