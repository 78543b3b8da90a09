"""Korean clauses: topic, time, the rest, and the predicate last; and their English."""

from __future__ import annotations

from dataclasses import dataclass

from tools.corpora import english
from tools.corpora.choice import combine, join, read_lexicon
from tools.corpora.clause import Clause as BaseClause
from tools.corpora.clause import Time, Times, fronted_english, question_english, statement_english
from tools.corpora.korean.hangul import Predicate, native, particle, sino
from tools.corpora.korean.verbs import conclude, deny
from tools.corpora.korean.words import Phrase

__all__ = ["NOW", "TIMES", "Clause", "embedded", "fronted", "predicate", "question", "statement"]

NOW = Time("지금", "now", fronts=False)
SPANS = (
    *((f"{sino(n)} 일", f"{english.number(n)} days") for n in range(3, 11)),
    *((f"{sino(n)} 주", f"{english.number(n)} weeks") for n in range(2, 11)),
    *((f"{native(n)} 달", f"{english.number(n)} months") for n in range(2, 11)),
    *((f"{sino(n)} 년", f"{english.number(n)} years") for n in range(2, 11)),
)
MINUTES = {  # minutes -> how English says them, and whether it names the next hour
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
    """The times of day: native hours, Sino-Korean minutes, half past as 반."""
    found = []
    for hour in range(1, 13):
        for minutes, (words, later) in MINUTES.items():
            part = "반" if minutes == 30 else f"{sino(minutes)} 분" if minutes else ""
            named = english.number((hour - 1 + later) % 12 + 1)
            found.append(Time(f"{join(f'{native(hour)} 시', part)}에", f"at {words.format(named)}"))
    return tuple(found)


def date(month: str, day: int) -> tuple[str, str]:
    """A day of the year in words: 오월 삼일에; and its combination."""
    return f"{month} {sino(day)}일에", combine(month, sino(day))


TIMES = Times(read_lexicon("korean")["times"], SPANS, SPANS[:8], clock_times(), date)


@dataclass(slots=True)
class Clause(BaseClause[Phrase, Predicate]):
    """A Korean clause before its words are put in order.

    Attributes:
        mode: present, progressive, past, future, can, must, want or intend; denied also could (못).
        before: Korean between the time and the predicate.
    """

    before: str = ""


def predicate(clause: Clause) -> str:
    """The predicate that ends the clause."""
    if clause.negative:
        return deny(clause.verb, clause.mode, clause.subject.honorific)
    return conclude(clause.verb, clause.mode, clause.subject.honorific, clause.subject.person == 0)


def statement(clause: Clause) -> tuple[str, str]:
    """Topic first: 민수 씨는 어제 책을 샀어요 | Minsu bought a book yesterday."""
    topic = particle(clause.subject.text, "topic")
    return join(topic, clause.time.foreign, clause.before, predicate(clause)), statement_english(clause)


def fronted(clause: Clause) -> tuple[str, str]:
    """Time first: 어제 민수 씨는 책을 샀어요 | yesterday Minsu bought a book."""
    topic = particle(clause.subject.text, "topic")
    return join(clause.time.foreign, topic, clause.before, predicate(clause)), fronted_english(clause)


def question(clause: Clause) -> tuple[str, str]:
    """As a statement; only English changes: did Minsu buy a book yesterday."""
    return statement(clause)[0], question_english(clause)


def embedded(clause: Clause, ending: str) -> tuple[str, str]:
    """Within another clause: 이/가, and the predicate with the given ending: 민수 씨가 어제 책을 샀다고."""
    subject = particle(clause.subject.text, "subject") if clause.subject.text else ""
    return join(subject, clause.time.foreign, clause.before, ending), statement_english(clause)
