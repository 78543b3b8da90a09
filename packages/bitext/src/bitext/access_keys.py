"""Remove the access keys of menus and buttons from pairs of program messages: `_Cancel`, `&File`, `취소(_C)`."""

from __future__ import annotations

import re
from itertools import zip_longest

_SIGNS = "_&~"  # before an access key: GTK; Qt, KDE and Windows; LibreOffice
_MOST_WORDS, _FEW_WORDS = 20, 3  # words of a line with an access key; with one inside a word on both sides
KEY = "[^\\W_\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # letters and digits of a keyboard
_BRACKETED = {sign: re.compile(rf"\s?[(（\[]{sign}{KEY}[)）\]]") for sign in _SIGNS}
# A sign before a letter or digit, neither doubled nor the beginning of a character reference.
_INLINE = {sign: re.compile(rf"(?<!{sign}){sign}(?={KEY})(?!#?\w+;)") for sign in _SIGNS}
_BEFORE_WORD = re.compile(r"(?:^|[\s\"'“„«»(-])$")
_NAME_BESIDE = re.compile(r"[A-Za-z0-9_&~]*$"), re.compile(r"^[A-Za-z0-9_&~]*")  # before and after a sign


def without_access_keys(source: str, target: str) -> tuple[str, str]:
    """Return both sides of a pair without their access keys.

    A sign inside a word counts only if both sides have one, and not in a name that both sides share: `file_name`,
    `AT&T` and `&amp;` stay. A doubled sign beside an access key becomes a single one, as programs show it.
    """
    for sign in _SIGNS:
        if sign in source or sign in target:
            source, target = _without_sign(source, target, sign)
    return source, target


def _without_sign(source: str, target: str, sign: str) -> tuple[str, str]:
    """Return both sides without the access keys of a sign, line by line if they have equally many lines."""
    lines = source.split("\n"), target.split("\n")
    if len(lines[0]) != len(lines[1]):
        lines = [source], [target]
    pairs = [_plain_lines(*pair, sign) for pair in zip_longest(*lines)]
    return "\n".join(pair[0] for pair in pairs), "\n".join(pair[1] for pair in pairs)


def _plain_lines(source: str, target: str, sign: str) -> tuple[str, str]:
    lines = source, target
    spans = [_access_key(line, sign) for line in lines]
    places = [_place(line, span) if span else "" for line, span in zip(lines, spans, strict=True)]
    if all(places):
        names = {_name(line, span[0]) for line, span in zip(lines, spans, strict=True) if span}
        title = all(
            len(line.split()) <= _FEW_WORDS and line[0].isalpha() and not line[0].islower() for line in lines
        )
        if (len(names) == 1 and "label" not in places) or (set(places) == {"inside"} and not title):
            return lines
    elif {"", "inside"} <= set(places) or (sign == "~" and "label" not in places):
        return lines
    source, target = (
        (line[: span[0]] + line[span[1] :]).replace(2 * sign, sign) if span else line
        for line, span in zip(lines, spans, strict=True)
    )
    return source, target


def _access_key(line: str, sign: str) -> tuple[int, int] | None:
    """Return the span of the only possible access key of a line, None if there is none or more than one."""
    spans = [match.span() for match in (*_BRACKETED[sign].finditer(line),) or _INLINE[sign].finditer(line)]
    if len(spans) != 1 or len(line.split()) > _MOST_WORDS:
        return None
    start, end = spans[0]
    before, after = line[start - 1 : start], line[end : end + 1]
    capitals = before.isalpha() and before.isupper() and after.isupper()  # R&D
    several = _name(line, start).count(sign) > 1  # __NAME__, _emphasis_
    return None if end - start == 1 and (capitals or several) else (start, end)


def _place(line: str, span: tuple[int, int]) -> str:
    """Return where a sign is: in brackets or before a capital ("label"), "before" another word, or "inside" one."""
    start, end = span
    if end - start > 1:
        return "label"
    if not _BEFORE_WORD.search(line[:start]):
        return "inside"
    return "label" if line[end].isupper() and (line[start] != "~" or not line[:start].strip()) else "before"


def _name(line: str, start: int) -> str:
    """Return the name, as programs use them, around a sign."""
    before, after = _NAME_BESIDE[0].search(line[:start]), _NAME_BESIDE[1].search(line[start:])
    return (before[0] if before else "") + (after[0] if after else "")
