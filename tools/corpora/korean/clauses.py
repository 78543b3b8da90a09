"""Korean clauses: topic, time, the rest, and the predicate last; and their English."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.corpora import english
from tools.corpora.choice import Rng, Weighted, combine, join
from tools.corpora.clause import NO_TIME, Time, fronted_english, question_english, statement_english
from tools.corpora.english import MONTHS, WEEKDAYS
from tools.corpora.korean.hangul import Predicate, native, particle, sino
from tools.corpora.korean.verbs import conclude, deny
from tools.corpora.korean.words import Phrase

__all__ = [
    "CLOCK",
    "DATES",
    "FUTURE",
    "MONTH_LENGTHS",
    "NOW",
    "ON_DAY",
    "PAST",
    "Clause",
    "draw_time",
    "embedded",
    "fronted",
    "predicate",
    "question",
    "statement",
    "times",
]

DAY_NAMES = ("월요일", "화요일", "수요일", "목요일", "금요일", "토요일", "일요일")
MONTH_NAMES = ("일월", "이월", "삼월", "사월", "오월", "유월", "칠월", "팔월", "구월", "시월", "십일월", "십이월")
MONTH_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

NOW = Time("지금", "now", fronts=False)
PAST = (
    *(Time("어제", "yesterday"), Time("그저께", "the day before yesterday")),
    *(Time("오늘 아침에", "this morning"), Time("어제저녁에", "yesterday evening")),
    *(Time("지난주에", "last week"), Time("지난달에", "last month"), Time("작년에", "last year")),
)
FUTURE = (
    *(Time("내일", "tomorrow"), Time("모레", "the day after tomorrow")),
    *(Time("오늘 저녁에", "this evening"), Time("내일 아침에", "tomorrow morning")),
    *(Time("다음 주에", "next week"), Time("다음 달에", "next month"), Time("내년에", "next year")),
)
HABIT = (
    *(Time("매일", "every day"), Time("매주", "every week"), Time("주말마다", "every weekend")),
    *(Time("아침마다", "every morning"), Time("저녁마다", "every evening")),
    *(Time(f"{day}마다", f"every {name}") for day, name in zip(DAY_NAMES, WEEKDAYS, strict=True)),
)
FREQUENCY = (
    *(Time("자주", "often", False, True), Time("항상", "always", False, True)),
    Time("가끔", "sometimes", False, True),
)
ON_DAY = tuple(Time(f"{day}에", f"on {name}") for day, name in zip(DAY_NAMES, WEEKDAYS, strict=True))
SPANS = (
    *((f"{sino(n)} 일", f"{english.number(n)} days") for n in range(3, 11)),
    *((f"{sino(n)} 주", f"{english.number(n)} weeks") for n in range(2, 11)),
    *((f"{native(n)} 달", f"{english.number(n)} months") for n in range(2, 11)),
    *((f"{sino(n)} 년", f"{english.number(n)} years") for n in range(2, 11)),
)
AGO = tuple(Time(f"{span} 전에", f"{words} ago") for span, words in SPANS)
HENCE = tuple(Time(f"{span} 후에", f"in {words}") for span, words in SPANS)
IN_MONTH = tuple(Time(f"{month}에", f"in {name}") for month, name in zip(MONTH_NAMES, MONTHS, strict=True))
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


def dates() -> tuple[Time, ...]:
    """Every day of the year in words: 오월 삼일에."""
    return tuple(
        Time(
            f"{month} {sino(day)}일에",
            f"on the {english.ordinal(day)} of {name}",
            combination=combine(month, sino(day)),
        )
        for month, name, length in zip(MONTH_NAMES, MONTHS, MONTH_LENGTHS, strict=True)
        for day in range(1, length + 1)
    )


CLOCK, DATES = clock_times(), dates()
DAYS_AGO, DAYS_HENCE = AGO[:8], HENCE[:8]
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


def draw_time(rng: Rng, kind: str) -> Time:
    """A time of a kind, as in `times`."""
    return rng.pick(rng.weigh(times(kind)))


@dataclass(slots=True)
class Clause:
    """A clause before its words are put in order.

    Attributes:
        mode: present, progressive, past, future, can, must, want or intend; denied also could (못).
        before: Korean between the time and the predicate.
        rest: what follows the English verb.
        combinations: the lexical choices that meet in it, the time aside.
    """

    subject: Phrase
    verb: Predicate
    mode: str
    time: Time = NO_TIME
    before: str = ""
    rest: str = ""
    negative: bool = False
    combinations: list[str] = field(default_factory=list)

    def met(self) -> list[str]:
        """All lexical choices that meet in it."""
        return [*self.combinations, self.time.combination] if self.time.combination else self.combinations


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
