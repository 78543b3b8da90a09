"""What the clauses of all grammars share: when, and their English."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tools.corpora import english
from tools.corpora.choice import join
from tools.corpora.english import EnglishVerb

__all__ = ["NO_TIME", "Said", "Time", "fronted_english", "question_english", "statement_english"]


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


class Said(Protocol):
    """A clause, as English sees it."""

    @property
    def subject(self) -> Subject:
        """Who does it."""
        ...

    @property
    def verb(self) -> Action:
        """What is done."""
        ...

    @property
    def mode(self) -> str:
        """The tense or modal verb, as in `tools.corpora.english`."""
        ...

    @property
    def time(self) -> Time:
        """When."""
        ...

    @property
    def rest(self) -> str:
        """What follows the verb."""
        ...

    @property
    def negative(self) -> bool:
        """Whether it is denied."""
        ...


def said(clause: Said) -> str:
    """The verb group of a statement."""
    say = english.negated if clause.negative else english.predicate
    return say(clause.verb.english, clause.mode, clause.subject.person)


def statement_english(clause: Said) -> str:
    """Subject first: Anna looked for the ball yesterday; Anna often reads."""
    time = clause.time.english
    if clause.time.adverb:
        return join(clause.subject.english, time, said(clause), clause.rest)
    return join(clause.subject.english, said(clause), clause.rest, time)


def fronted_english(clause: Said) -> str:
    """Time first: yesterday Anna looked for the ball."""
    return join(clause.time.english, clause.subject.english, said(clause), clause.rest)


def question_english(clause: Said) -> str:
    """Auxiliary first: did Anna look for the ball yesterday."""
    auxiliary, main = english.split_predicate(clause.verb.english, clause.mode, clause.subject.person)
    before, after = (clause.time.english, "") if clause.time.adverb else ("", clause.time.english)
    no = "not" if clause.negative else ""
    return join(auxiliary, clause.subject.english, no, before, main, clause.rest, after)
