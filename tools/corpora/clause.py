"""Times, subjects, verbs and clauses with their English: shared by all grammars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from tools.corpora import english
from tools.corpora.choice import Rng, TextPair, Weighted, join
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
    """A time expression in both languages, and its possible positions.

    Attributes:
        fronts: whether it may begin the sentence.
        adverb: whether it precedes the English verb (``often``) instead of ending the clause.
        combination: for a date, the combination of day and month; else "".
    """

    foreign: str
    english: str
    fronts: bool = True
    adverb: bool = False
    combination: str = ""


NO_TIME = Time("", "", fronts=False)


class Times:
    """The time expressions of a language.

    Attributes:
        past, future, on_day, clock, dates: time expressions of one kind.
        groups: groups of times by kind: past, lately (near), future, soon (near), habit.
    """

    def __init__(
        self,
        table: Mapping[str, Any],
        spans: Sequence[TextPair],
        near_spans: Sequence[TextPair],
        clock: tuple[Time, ...],
        date: Callable[[str, int], tuple[str, str]],
    ) -> None:
        """Build the time expressions.

        Args:
            table: the table `times` of a lexicon.
            spans: spans of time, such as three days.
            near_spans: spans of days.
            clock: times of day.
            date: function that returns a day of a month in foreign words, and its combination.
        """

        def phrases(pattern: str, words: Iterable[TextPair]) -> tuple[Time, ...]:
            foreign_pattern, english_pattern = table[pattern]
            return tuple(Time(foreign_pattern.format(word), english_pattern.format(name)) for word, name in words)

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
        frequency = tuple(
            Time(word, translation, fronts=False, adverb=True) for word, translation in table["frequency"]
        )
        self.groups = {
            "past": Weighted({self.past: 8, phrases("ago", spans): 3, **dated}),
            "future": Weighted({self.future: 8, phrases("hence", spans): 2, **dated}),
            "lately": Weighted({self.past[:4]: 8, phrases("ago", near_spans): 2, **near}),
            "soon": Weighted({self.future[:4]: 8, phrases("hence", near_spans): 2, **near}),
            "habit": Weighted({(*habit, *phrases("every_day", days)): 5, frequency: 4}),
        }

    def draw(self, rng: Rng, letter: str, near: bool, modal_share: float) -> Time:
        """Draw a time that fits a mode.

        Args:
            rng: random choices.
            letter: letter of the mode, as in the lexicons.
            near: whether the time is near.
            modal_share: probability that a clause with a modal verb has a time.
        """
        if letter in "hi":
            kind = "habit"
        elif letter == "p":
            kind = "lately" if near else "past"
        elif letter == "f" or (letter == "m" and rng.chance(modal_share)):
            kind = "soon" if near else "future"
        else:
            return NO_TIME
        return rng.pick(rng.pick_weighted(self.groups[kind]))

    def past_texts(self, near: bool) -> set[str]:
        """Return the foreign texts of all times of the past, or of the near ones."""
        return {time.foreign for group in self.groups["lately" if near else "past"].items for time in group}


class Subject(Protocol):
    """A subject: its English text and its grammatical person."""

    @property
    def english(self) -> str:
        """The English text."""
        ...

    @property
    def person(self) -> int:
        """0 I, 1 you, 2 third singular, 3 plural."""
        ...


class ForeignVerb(Protocol):
    """A foreign verb with its English translation."""

    @property
    def english(self) -> EnglishVerb:
        """The English verb."""
        ...


SubjectT = TypeVar("SubjectT", bound=Subject)
VerbT = TypeVar("VerbT", bound=ForeignVerb)


@dataclass(slots=True)
class Clause(Generic[SubjectT, VerbT]):
    """A clause before its words are put in order.

    Attributes:
        mode: the tense or modal verb, as in `tools.corpora.english`.
        rest: the English words after the verb.
        combinations: the combinations of words in the clause, without that of the time.
    """

    subject: SubjectT
    verb: VerbT
    mode: str
    time: Time = NO_TIME
    rest: str = ""
    negative: bool = False
    combinations: list[str] = field(default_factory=list)

    def all_combinations(self) -> list[str]:
        """Return the combinations of words in the clause, with that of the time."""
        return [*self.combinations, self.time.combination] if self.time.combination else self.combinations


def verb_group(clause: Clause[SubjectT, VerbT]) -> str:
    """Return the English verb group of a statement."""
    inflect = english.negated if clause.negative else english.predicate
    return inflect(clause.verb.english, clause.mode, clause.subject.person)


def statement_english(clause: Clause[SubjectT, VerbT]) -> str:
    """Order the English with the subject first: Anna looked for the ball yesterday; Anna often reads."""
    time = clause.time.english
    if clause.time.adverb:
        return join(clause.subject.english, time, verb_group(clause), clause.rest)
    return join(clause.subject.english, verb_group(clause), clause.rest, time)


def fronted_english(clause: Clause[SubjectT, VerbT]) -> str:
    """Order the English with the time first: yesterday Anna looked for the ball."""
    return join(clause.time.english, clause.subject.english, verb_group(clause), clause.rest)


def question_english(clause: Clause[SubjectT, VerbT]) -> str:
    """Order the English with the auxiliary first: did Anna look for the ball yesterday."""
    auxiliary, main = english.split_predicate(clause.verb.english, clause.mode, clause.subject.person)
    before, after = (clause.time.english, "") if clause.time.adverb else ("", clause.time.english)
    negation = "not" if clause.negative else ""
    return join(auxiliary, clause.subject.english, negation, before, main, clause.rest, after)
