"""English articles, numbers, times and verb groups, shared by all built-in corpora."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "MONTHS",
    "MONTH_LENGTHS",
    "WEEKDAYS",
    "EnglishVerb",
    "be",
    "negated",
    "number",
    "ordinal",
    "predicate",
    "split_predicate",
    "was",
    "with_article",
]

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
MONTH_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
BE = ("am", "are", "is", "are")
WAS = ("was", "were", "was", "were")
DO = ("do", "do", "does", "do")
AUXILIARIES = {
    "future": "will",
    "can": "can",
    "must": "must",
    "may": "may",
    "would like": "would",
    "could": "could",
}
CONSONANT_SOUND = ("uni", "use", "eu", "one")  # spelt with a vowel, pronounced with a consonant


@dataclass(frozen=True, slots=True)
class EnglishVerb:
    """The forms of a verb; each includes the particle, if any (``"picks up"``)."""

    base: str
    third: str
    past: str
    progressive: str


def with_article(words: str) -> str:
    """Put a or an before a noun phrase."""
    vowel = words[0].lower() in "aeiou" and not words.startswith(CONSONANT_SOUND)
    return f"an {words}" if vowel else f"a {words}"


def number(value: int) -> str:
    """Spell out a number from 0 to 999,999: 21 -> twenty-one, 300 -> three hundred, 15000 -> fifteen thousand."""
    if value < 20:
        return SMALL[value]
    if value < 100:
        tens, ones = divmod(value, 10)
        return TENS[tens] + (f"-{SMALL[ones]}" if ones else "")
    unit, name = (1000, "thousand") if value >= 1000 else (100, "hundred")
    high, low = divmod(value, unit)
    link = " and " if 0 < low < 100 else " "
    return f"{number(high)} {name}" + (f"{link}{number(low)}" if low else "")


def ordinal(value: int) -> str:
    """Spell out an ordinal number from 1 to 99: 3 -> third, 21 -> twenty-first, 30 -> thirtieth."""
    head, dash, last = number(value).rpartition("-")
    if last in ORDINALS:
        return head + dash + ORDINALS[last]
    return head + dash + (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")


def be(person: int) -> str:
    """Return the present form of to be; persons are 0 I, 1 you, 2 he or she or it, 3 we or they."""
    return BE[person]


def was(person: int) -> str:
    """Return the past form of to be."""
    return WAS[person]


def predicate(verb: EnglishVerb, mode: str, person: int) -> str:
    """Return the verb group of a statement: buys, is buying, bought, will buy, can buy, wants to buy."""
    if mode == "present":
        return verb.third if person == 2 else verb.base
    if mode == "past":
        return verb.past
    if mode == "want":
        return f"{'wants' if person == 2 else 'want'} to {verb.base}"
    auxiliary, main = split_predicate(verb, mode, person)
    return f"{auxiliary} {main}"


def split_predicate(verb: EnglishVerb, mode: str, person: int) -> tuple[str, str]:
    """Return auxiliary and main verb for questions and negations: (does, buy), (is, buying), (did, want to buy)."""
    if mode == "present":
        return DO[person], verb.base
    if mode == "past":
        return "did", verb.base
    if mode == "progressive":
        return BE[person], verb.progressive
    if mode == "want":
        return DO[person], f"want to {verb.base}"
    if mode == "intend":
        return BE[person], f"going to {verb.base}"
    if mode == "would like":
        return "would", f"like to {verb.base}"
    return AUXILIARIES[mode], verb.base


def negated(verb: EnglishVerb, mode: str, person: int) -> str:
    """Return the verb group of a negated statement: does not buy, cannot buy."""
    auxiliary, main = split_predicate(verb, mode, person)
    return f"cannot {main}" if auxiliary == "can" else f"{auxiliary} not {main}"
