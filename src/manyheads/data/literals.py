"""Find the parts of a text that a translation copies unchanged: addresses, emoji, placeholders and more.

Letters of addresses and placeholders are ASCII, so that a Korean particle after an address is text.
"""

from __future__ import annotations

import re

__all__ = ["placeholders_of", "spans_to_translate"]

PLACEHOLDERS = (
    r"(?:https?://|www\.)[!-;=?-~]*[\w/]",  # addresses: ASCII but for < and >
    r"[A-Za-z0-9.+_-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
    r"</?[A-Za-z][^<>]{0,200}>",  # tags
    r"\{\{?\w*\}?\}",  # {name}, {{name}}, ${name}, %(name)s, %s, %1$s
    r"\$\{\w+\}",
    r"%\(\w+\)[sdf]",
    r"%(?:\d+\$)?[sdf]\b",
)
FURTHER = (  # literals that may be words in one of the languages
    r"\$\d\b(?![.,]\d)",  # $1, __NAME__, @name
    r"__[A-Z]+(?:_[A-Z]+)*__",
    r"(?<![\w@])@[A-Za-z]\w*",
    r"(?<!\w)\+\d(?:[ ()/-]{0,2}\d){6,14}\b",  # telephone numbers with the code of the country
    r"\bv\d+(?:\.\d+)+\b",  # versions
    r"[\u2600-\u27bf\U0001f000-\U0001faff][\u2600-\u27bf\ufe0f\u200d\u20e3\U0001f000-\U0001faff\U000e0020-\U000e007f]*",
)
PLACEHOLDER = re.compile("|".join(PLACEHOLDERS), re.ASCII)
# A literal with the brackets and quotation marks before it, and the punctuation after it.
LITERAL = re.compile(rf"[(\[{{<\"'„“‚‘«‹¿¡]*(?:{'|'.join((*PLACEHOLDERS, *FURTHER))})(?u:[^\w\s<{{@$%]*)", re.ASCII)
SIGNS = ("@", "{", "%", "<", "://", "www.")  # each placeholder has one of these
MAYBE = re.compile(r"[@{%<$_+\u2600-\u27bf\U0001f000-\U0001faff]|://|www\.|\bv\d", re.ASCII)


def placeholders_of(text: str) -> list[str]:
    """Return the addresses, tags and placeholders of a text, in order."""
    return PLACEHOLDER.findall(text) if any(map(text.__contains__, SIGNS)) else []


def spans_to_translate(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of the parts of a text between literals, without white space at the ends.

    Parts without a letter are left out: numbers and marks are the same in both languages.
    """
    matches = LITERAL.finditer(text) if MAYBE.search(text) else ()
    borders = [0, *(border for match in matches for border in match.span()), len(text)]
    spans = []
    for start, end in zip(borders[::2], borders[1::2], strict=True):
        part = text[start:end]
        if any(map(str.isalpha, part)):
            first = start + len(part) - len(part.lstrip())
            spans.append((first, first + len(part.strip())))
    return spans
