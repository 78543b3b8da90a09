"""Messages of programs: their tags, access keys and placeholders, and the plural forms of languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from gettext import c2py
from itertools import chain

from bitext.access_keys import KEY, without_access_keys
from bitext.languages import base_language, normal_form
from bitext.literals import literals_of, placeholders_of
from manyheads.documents.blocks import Block, Token, make_block
from manyheads.documents.tag_projection import project_tags
from manyheads.documents.units import Edit, Translated, Unit

_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)(?:\s[^<>]*)?/?>")
_FURTHER_PLACEHOLDERS = re.compile(
    r"%%|\$t\([^()]*\)|\$\w+\$|(?<!\w)#(?!\w)|\{[^{}]*\}|[{}]"
)  # printf, i18next, Chrome, ICU, Fluent
_ORDERED = re.compile(r"%(?![(<{\[%]|\d+\$|L?\d+$).+|\{\}")  # placeholders without a name or number
_MAX_LABEL = 3  # words of a text with an access key before a small letter
_END = re.compile(r"[\s.:…]*$")
# Rule of gettext, plural categories of Unicode, and languages: section "Plural forms" of the manual of gettext, and
# the chart "Language Plural Rules" of CLDR.
_ONE_OTHER = "n != 1", "one other"
_SLAVIC = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"
_PLURALS = [
    ("0", "other", "id ja ko lo ms my th vi zh"),
    ("n > 1", "one other", "am bn fa gu hi hy kn zu"),
    ("n > 1", "one many other", "fr pt-BR"),
    ("n != 1", "one many other", "ca es it pt"),
    ("n != 1", "one two other", "he"),
    ("n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2", "zero one other", "lv"),
    ("n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2", "one few other", "ro"),
    ("n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2", "one few many other", "lt"),
    (f"n%10==1 && n%100!=11 ? 0 : {_SLAVIC}", "one few many other", "be ru uk"),
    (f"n%10==1 && n%100!=11 ? 0 : {_SLAVIC}", "one few other", "bs hr sr"),
    (f"n==1 ? 0 : {_SLAVIC}", "one few many other", "pl"),
    ("n==1 ? 0 : n>=2 && n<=4 ? 1 : 2", "one few many other", "cs sk"),
    ("n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3", "one two few other", "sl"),
    ("n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4", "one two few many other", "ga"),
    (
        "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5",
        "zero one two few many other",
        "ar",
    ),
]
_NUMBERS = range(1_000)  # by which the forms of a rule are found
MAX_FORMS = 10


def plural_rule(language: str) -> tuple[str, str]:
    """Return the plural rule of a language for gettext, and its plural categories of Unicode, divided by blanks."""
    rules = {code: (rule, categories) for rule, categories, codes in _PLURALS for code in codes.split()}
    return rules.get(normal_form(language), rules.get(base_language(language), _ONE_OTHER))


def numbers_of_forms(rule: str) -> list[list[int]]:
    """Return the numbers below 1,000 of each plural form of a rule of gettext.

    Raises:
        ValueError: it is no rule.
    """
    form_of = c2py(rule)
    try:
        forms = [form_of(number) for number in _NUMBERS]
    except ZeroDivisionError as error:
        raise ValueError(str(error)) from error
    if not 0 <= min(forms) <= max(forms) < MAX_FORMS:
        raise ValueError(f"more than {MAX_FORMS} forms")
    return [[number for number in _NUMBERS if forms[number] == form] for form in range(max(forms) + 1)]


def keeps_placeholders(text: str, translation: str) -> bool:
    """Return whether a translation has the placeholders of a text; those without name or number in their order."""
    found = [[*placeholders_of(side), *_FURTHER_PLACEHOLDERS.findall(side)] for side in (text, translation)]
    ordered = [[placeholder for placeholder in side if _ORDERED.fullmatch(placeholder)] for side in found]
    return sorted(found[0]) == sorted(found[1]) and ordered[0] == ordered[1]


def message_tokens(text: str, escape: Callable[[str], str] = str) -> Iterator[Token]:
    """Yield the texts of a message and the tags in it.

    Args:
        text: the message.
        escape: writes a tag as text of the file.
    """
    position = 0
    for match in _TAG.finditer(text):
        if position < match.start():
            yield Token("text", text[position : match.start()])
        kind = "atom" if match[0].endswith("/>") else "close" if match[1] else "open"
        yield Token(kind, escape(match[0]), match[2].lower())  # type: ignore[arg-type]  # a literal
        position = match.end()
    if position < len(text):
        yield Token("text", text[position:])


@dataclass(frozen=True)
class Message(Unit):
    """A message of a program.

    Attributes:
        access_key: the sign and letter of its access key, such as "&F"; its text lacks the sign.
    """

    access_key: str = ""

    def with_tags(self, translated: Translated) -> str:
        """Return a translation with its tags and access key."""
        text = _with_access_key(translated.text, self.access_key) if self.access_key else translated.text
        return project_tags(self.block, text, translated.links)

    def is_doubtful(self, translated: Translated) -> bool:
        """Return whether its translator doubts a translation, or its placeholders are others."""
        return translated.doubtful or not keeps_placeholders(self.text, translated.text)


@dataclass(frozen=True)
class ReplacedMessage(Message):
    """A message of a file with one language: its translation replaces it, unless a placeholder is lost.

    Attributes:
        write: writes a translation as text of the file.
    """

    write: Callable[[str], str] = str

    def edits(self, translated: Translated) -> Iterator[Edit]:
        """Return the translation if a program can use it."""
        if keeps_placeholders(self.text, translated.text):
            yield Edit(self.start, self.end, self.write(self.with_tags(translated)))


def message_block(
    tokens: Sequence[Token], *, escape: Callable[[str], str] = str, one_blank: bool = False
) -> tuple[Block, str]:
    """Return the block of a message, without white space at its ends, and its access key, whose sign it lacks.

    Args:
        tokens: see `message_tokens`.
        escape: see `make_block`.
        one_blank: see `make_block`.
    """
    tokens, lead, tail, key = list(tokens), "", "", ""
    if tokens and tokens[0].kind == "text" and not one_blank:
        text = tokens[0].raw.lstrip()
        lead, tokens[0] = tokens[0].raw[: len(tokens[0].raw) - len(text)], Token("text", text)
    if tokens and tokens[-1].kind == "text" and not one_blank:
        text = tokens[-1].raw.rstrip()
        tail, tokens[-1] = tokens[-1].raw[len(text) :], Token("text", text)
    if len(tokens) == 1 and tokens[0].kind == "text":
        text, key = _without_access_key(tokens[0].raw)
        tokens[0] = Token("text", text)
    block = make_block(tokens, escape=escape, one_blank=one_blank)
    return (block if one_blank else replace(block, lead=lead, tail=tail)), key


def _without_access_key(text: str) -> tuple[str, str]:
    """Return a text without the sign of its access key, and that sign with its letter, such as "&F"; else ""."""
    plain, _ = without_access_keys(text, "")
    for sign in "&_~" if plain != text else "":
        letter = text.partition(sign)[2][:1]
        if text.count(sign) == 1 and sign not in plain and (letter.isupper() or len(text.split()) <= _MAX_LABEL):
            return plain, sign + letter
    return text, ""


def _with_access_key(text: str, key: str) -> str:
    """Return a translation with an access key: before its letter, else another one, else in brackets at the end."""
    sign, letter = key[0], re.escape(key[1])
    literals = literals_of(text)
    places = (re.finditer(place, text, re.IGNORECASE) for place in (rf"\b{letter}", letter, rf"\b{KEY}"))
    for match in chain.from_iterable(places):
        if not any(start <= match.start() < end for start, end in literals):
            return f"{text[: match.start()]}{sign}{text[match.start() :]}"
    end = _END.search(text)
    assert end is not None
    return f"{text[: end.start()]}({sign}{key[1].upper()}){text[end.start() :]}"
