"""Messages of programs: their tags, access keys, placeholders and branches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from bitext.access_keys import KEY, without_access_keys
from bitext.literals import literals_of, placeholders_of
from manyheads.documents.blocks import Block, Token, make_block
from manyheads.documents.tag_projection import project_tags
from manyheads.documents.units import Edit, Translated, Unit

_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)(?:\s[^<>]*)?/?>")
# Placeholders of printf, i18next, Chrome and ICU, and braces.
_FURTHER_PLACEHOLDERS = re.compile(r"%%|\$t\([^()]*\)|\$\w+\$|(?<!\w)#(?!\w)|\{[^{}]*\}|[{}]")
_ORDERED = re.compile(r"%(?![(<{\[%]|\d+\$|L?\d+$).+|\{\}")  # placeholders without a name or number
_MAX_LABEL = 3  # words of a text with an access key before a small letter
_END = re.compile(r"[\s.:…]*$")


def _placeholders(text: str) -> list[str]:
    return [*placeholders_of(text), *_FURTHER_PLACEHOLDERS.findall(text)]


def keeps_placeholders(text: str, translation: str) -> bool:
    """Return whether a translation has the placeholders of a text; those without name or number in their order."""
    found = _placeholders(text), _placeholders(translation)
    ordered = [[placeholder for placeholder in side if _ORDERED.fullmatch(placeholder)] for side in found]
    return Counter(found[0]) == Counter(found[1]) and ordered[0] == ordered[1]


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

    def is_usable(self, translated: Translated) -> bool:
        """Return whether a translation has the placeholders of the text, and no tag stands in one."""
        kept = keeps_placeholders(self.text, translated.text)
        if not kept or not self.is_tagged:
            return kept
        return Counter(_placeholders(translated.text)) <= Counter(_placeholders(self.with_tags(translated)))

    def is_doubtful(self, translated: Translated) -> bool:
        """Return whether its translator doubts a translation, or a program cannot use it."""
        return translated.doubtful or not self.is_usable(translated)


@dataclass(frozen=True)
class ReplacedMessage(Message):
    """A message of a file with one language: its translation replaces it, if a program can use it.

    Attributes:
        write: writes a translation as text of the file.
    """

    write: Callable[[str], str] = str

    def edits(self, translated: Translated) -> Iterator[Edit]:
        """Return the translation if a program can use it."""
        if self.is_usable(translated):
            yield Edit(self.start, self.end, self.write(self.with_tags(translated)))


def message_tokens(text: str, escape: Callable[[str], str] = str) -> Iterator[Token]:
    """Yield the texts of a message and the tags in it, which `escape` writes as text of the file."""
    position = 0
    for match in _TAG.finditer(text):
        if position < match.start():
            yield Token("text", text[position : match.start()])
        kind = "atom" if match[0].endswith("/>") else "close" if match[1] else "open"
        yield Token(kind, escape(match[0]), match[2].lower())  # type: ignore[arg-type]  # a literal
        position = match.end()
    if position < len(text):
        yield Token("text", text[position:])


def message_block(
    tokens: Sequence[Token], *, escape: Callable[[str], str] = str, one_blank: bool = False
) -> tuple[Block, str]:
    """Return the block of a message (see `make_block`) without white space at its ends, and its access key."""
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
    removed = [sign for sign in "&_~" if text.count(sign) != plain.count(sign)]
    if len(removed) == 1 and text.count(removed[0]) == 1:
        letter = text.partition(removed[0])[2][:1]
        if letter.isupper() or len(text.split()) <= _MAX_LABEL:
            return plain, removed[0] + letter
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


def texts_of_branches(message: str, selector: re.Pattern[str], sign: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return the offsets of the texts of a message: what stands around selectors, and the texts of their branches.

    Args:
        message: the message; if its braces are not balanced, it is one text.
        selector: what begins a selector. Its branches stand in braces, or each behind a key in a line of its own.
        sign: "{", "}", a line end with the key of a branch, and what else has braces that are text.
    """
    spans: list[tuple[int, int]] = []
    braces: list[str] = []  # what the open ones hold
    start = position = 0
    while match := sign.search(message, position):
        position, inside = match.end(), braces[-1] if braces else ""
        if match[0] == "{" and inside == "selector":
            braces.append("branch")
            start = position
        elif match[0] == "{":
            opened = selector.match(message, match.start())
            braces.append("selector" if opened else "name")
            if opened:
                spans.append((start, match.start()))
                start = position = opened.end()
        elif match[0] == "}" and not braces:
            return [(0, len(message))]
        elif (match[0] == "}" and braces.pop() != "name") or (
            match[0][0] == "\n" and inside in ("selector", "keys")
        ):
            spans.append((start, match.start()))
            start = position
            if match[0] != "}":
                braces[-1] = "keys"
    return [(0, len(message))] if braces else [*spans, (start, len(message))]
