"""What the clauses of all grammars share: times, subject and verb, and their English."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from tools.corpora import english
from tools.corpora.choice import Rng, Texts, Weighted, join
from tools.corpora.english import MONTH_LENGTHS, MONTHS, WEEKDAYS, EnglishVerb

__all__ = [
    "NO_TIME",
    "Clause",
    "Time",
    "Times",
    "fronted_english",
    "question_english",
    "statement_english",
]


@dataclass(frozen=True, slots=True)
class Time:
    """When: the foreign words, the English ones, and where they may stand.

    Attributes:
        fronts: may begin the sentence.
        adverb: stands before the English verb (``often``) instead of at the end.
        combination: of a date, day and month.
    """

    foreign: str
    english: str
    fronts: bool = True
    adverb: bool = False
    combination: str = ""


NO_TIME = Time("", "", fronts=False)


class Times:
    """The times of a language.

    Attributes:
        past, future, on_day, clock, dates: some of them.
        groups: groups of times by kind: past, lately (near), future, soon (near), habit.
    """

    def __init__(
        self,
        table: Mapping[str, Any],
        spans: Sequence[Texts],
        near_spans: Sequence[Texts],
        clock: tuple[Time, ...],
        date: Callable[[str, int], tuple[str, str]],
    ) -> None:
        """Make the times.

        Args:
            table: the table `times` of a lexicon.
            spans: spans of time, such as three days.
            near_spans: those in days.
            clock: times of day.
            date: returns a day of a month in foreign words, and its combination.
        """

        def phrases(pattern: str, words: Iterable[Texts]) -> tuple[Time, ...]:
            foreign, said = table[pattern]
            return tuple(Time(foreign.format(word), said.format(name)) for word, name in words)

        days, months = tuple(zip(table["days"], WEEKDAYS, strict=True)), zip(table["months"], MONTHS, strict=True)
        kinds = ("past", "future", "habit")
        self.past, self.future, habit = (tuple(Time(*row) for row in table[kind]) for kind in kinds)
        self.on_day, self.clock = phrases("on_day", days), clock
        self.dates = tuple(
            Time(foreign, f"on the {english.ordinal(day)} of {name}", combination=combination)
            for month, name, length in zip(table["months"], MONTHS, MONTH_LENGTHS, strict=True)
            for day in range(1, length + 1)
            for foreign, combination in [date(month, day)]
        )
        dated = {self.on_day: 3, phrases("in_month", months): 2, clock: 2, self.dates: 2}
        near = {self.on_day: 4, clock: 2, self.dates: 2}
        frequency = tuple(Time(word, said, fronts=False, adverb=True) for word, said in table["frequency"])
        self.groups = {
            "past": Weighted({self.past: 8, phrases("ago", spans): 3, **dated}),
            "future": Weighted({self.future: 8, phrases("hence", spans): 2, **dated}),
            "lately": Weighted({self.past[:4]: 8, phrases("ago", near_spans): 2, **near}),
            "soon": Weighted({self.future[:4]: 8, phrases("hence", near_spans): 2, **near}),
            "habit": Weighted({(*habit, *phrases("every_day", days)): 5, frequency: 4}),
        }

    def draw(self, rng: Rng, letter: str, quick: bool, planned: float) -> Time:
        """A time that fits a mode, a near one for what is over soon.

        Args:
            rng: random choices.
            letter: letter of the mode, as in the lexicons.
            quick: whether the time is near.
            planned: share of the clauses with a modal verb that have a time.
        """
        if letter in "hi":
            kind = "habit"
        elif letter == "p":
            kind = "lately" if quick else "past"
        elif letter == "f" or (letter == "m" and rng.chance(planned)):
            kind = "soon" if quick else "future"
        else:
            return NO_TIME
        return rng.pick(rng.weigh(self.groups[kind]))

    def past_texts(self, quick: bool) -> set[str]:
        """Every time of the past, or every near one."""
        return {time.foreign for group in self.groups["lately" if quick else "past"].items for time in group}


class Subject(Protocol):
    """Somebody or something, as English sees it."""

    @property
    def english(self) -> str:
        """Its words."""
        ...

    @property
    def person(self) -> int:
        """0 I, 1 you, 2 third singular, 3 plural."""
        ...


class Action(Protocol):
    """A foreign verb that knows its English one."""

    @property
    def english(self) -> EnglishVerb:
        """The English verb."""
        ...


SubjectT = TypeVar("SubjectT", bound=Subject)
ActionT = TypeVar("ActionT", bound=Action)


@dataclass(slots=True)
class Clause(Generic[SubjectT, ActionT]):
    """A clause before its words are put in order.

    Attributes:
        mode: the tense or modal verb, as in `tools.corpora.english`.
        rest: what follows the English verb.
        combinations: the lexical choices that meet in it, the time aside.
    """

    subject: SubjectT
    verb: ActionT
    mode: str
    time: Time = NO_TIME
    rest: str = ""
    negative: bool = False
    combinations: list[str] = field(default_factory=list)

    def met(self) -> list[str]:
        """All lexical choices that meet in it."""
        return [*self.combinations, self.time.combination] if self.time.combination else self.combinations


def said(clause: Clause[SubjectT, ActionT]) -> str:
    """The verb group of a statement."""
    say = english.negated if clause.negative else english.predicate
    return say(clause.verb.english, clause.mode, clause.subject.person)


def statement_english(clause: Clause[SubjectT, ActionT]) -> str:
    """Subject first: Anna looked for the ball yesterday; Anna often reads."""
    time = clause.time.english
    if clause.time.adverb:
        return join(clause.subject.english, time, said(clause), clause.rest)
    return join(clause.subject.english, said(clause), clause.rest, time)


def fronted_english(clause: Clause[SubjectT, ActionT]) -> str:
    """Time first: yesterday Anna looked for the ball."""
    return join(clause.time.english, clause.subject.english, said(clause), clause.rest)


def question_english(clause: Clause[SubjectT, ActionT]) -> str:
    """Auxiliary first: did Anna look for the ball yesterday."""
    auxiliary, main = english.split_predicate(clause.verb.english, clause.mode, clause.subject.person)
    before, after = (clause.time.english, "") if clause.time.adverb else ("", clause.time.english)
    no = "not" if clause.negative else ""
    return join(auxiliary, clause.subject.english, no, before, main, clause.rest, after)
