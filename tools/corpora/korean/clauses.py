"""Korean clauses (topic, time, other words, predicate) and their English."""

from __future__ import annotations

from dataclasses import dataclass

from tools.corpora import english
from tools.corpora.choice import combine, join, read_lexicon
from tools.corpora.clause import Clause as BaseClause
from tools.corpora.clause import Time, Times, fronted_english, question_english, statement_english
from tools.corpora.korean.hangul import Predicate, native_numeral, particle, sino_numeral
from tools.corpora.korean.verbs import conjugate, negate
from tools.corpora.korean.words import Phrase

__all__ = ["NOW", "TIMES", "Clause", "embedded", "fronted", "predicate", "question", "statement"]

NOW = Time("지금", "now", fronts=False)
SPANS = (
    *((f"{sino_numeral(n)} 일", f"{english.number(n)} days") for n in range(3, 11)),
    *((f"{sino_numeral(n)} 주", f"{english.number(n)} weeks") for n in range(2, 11)),
    *((f"{native_numeral(n)} 달", f"{english.number(n)} months") for n in range(2, 11)),
    *((f"{sino_numeral(n)} 년", f"{english.number(n)} years") for n in range(2, 11)),
)
MINUTES = {  # minutes -> English pattern, and 1 if it names the next hour
    0: ("{} o'clock", 0),
    10: ("ten past {}", 0),
    15: ("a quarter past {}", 0),
    20: ("twenty past {}", 0),
    30: ("half past {}", 0),
    40: ("twenty to {}", 1),
    45: ("a quarter to {}", 1),
    50: ("ten to {}", 1),
}


def clock_times() -> tuple[Time, ...]:
    """Return the times of day: native hours, Sino-Korean minutes, half past as 반."""
    times = []
    for hour in range(1, 13):
        for minutes, (pattern, next_hour) in MINUTES.items():
            korean_minutes = "반" if minutes == 30 else f"{sino_numeral(minutes)} 분" if minutes else ""
            english_hour = english.number((hour - 1 + next_hour) % 12 + 1)
            times.append(
                Time(
                    f"{join(f'{native_numeral(hour)} 시', korean_minutes)}에", f"at {pattern.format(english_hour)}"
                )
            )
    return tuple(times)


def date(month: str, day: int) -> tuple[str, str]:
    """Return a day of the year in words, 오월 삼일에, and its combination."""
    return f"{month} {sino_numeral(day)}일에", combine(month, sino_numeral(day))


TIMES = Times(read_lexicon("korean")["times"], SPANS, SPANS[:8], clock_times(), date)


@dataclass(slots=True)
class Clause(BaseClause[Phrase, Predicate]):
    """A Korean clause before its words are put in order.

    Attributes:
        mode: present, progressive, past, future, can, must, want or intend; negated also could (못).
        before: Korean words between the time and the predicate.
    """

    before: str = ""


def predicate(clause: Clause) -> str:
    """Return the predicate at the end of the clause."""
    if clause.negative:
        return negate(clause.verb, clause.mode, clause.subject.honorific)
    return conjugate(clause.verb, clause.mode, clause.subject.honorific, clause.subject.person == 0)


def statement(clause: Clause) -> tuple[str, str]:
    """Put the topic first: 민수 씨는 어제 책을 샀어요 | Minsu bought a book yesterday."""
    topic = particle(clause.subject.text, "topic")
    return join(topic, clause.time.foreign, clause.before, predicate(clause)), statement_english(clause)


def fronted(clause: Clause) -> tuple[str, str]:
    """Put the time first: 어제 민수 씨는 책을 샀어요 | yesterday Minsu bought a book."""
    topic = particle(clause.subject.text, "topic")
    return join(clause.time.foreign, topic, clause.before, predicate(clause)), fronted_english(clause)


def question(clause: Clause) -> tuple[str, str]:
    """Make a question, in Korean equal to the statement: did Minsu buy a book yesterday."""
    return statement(clause)[0], question_english(clause)


def embedded(clause: Clause, final_predicate: str) -> tuple[str, str]:
    """Embed the clause in another: 이/가, and the given predicate at the end: 민수 씨가 어제 책을 샀다고."""
    subject = particle(clause.subject.text, "subject") if clause.subject.text else ""
    return join(subject, clause.time.foreign, clause.before, final_predicate), statement_english(clause)
