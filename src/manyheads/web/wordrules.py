"""The rules by which spaCy splits text into words, as patterns of JavaScript."""

from __future__ import annotations

import re
from typing import Any

from manyheads.errors import require

_WHITE = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = r"\p{L}\p{N}_"
_CLASSES = {"w": _WORD, "d": r"\p{Nd}", "s": _WHITE}
_SYNTAX = frozenset(r"^$\.*+?()[]{}|/")  # characters that JavaScript allows after a backslash
_TOKEN = re.compile(r"\\U([0-9A-Fa-f]{8})|\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})|\\(.)|(.)", re.DOTALL)


def describe_word_rules(pipeline: str) -> dict[str, Any] | None:
    """Return the rules of a blank spaCy pipeline as JSON; None if it does more than JavaScript's patterns can."""
    spacy = require("spacy", extra="words", purpose='tokenizer.kind = "words"')
    tokenizer = spacy.blank(pipeline).tokenizer
    if type(tokenizer) is not spacy.tokenizer.Tokenizer or tokenizer.token_match or not tokenizer.faster_heuristics:
        return None
    patterns = {
        "prefix": tokenizer.prefix_search,
        "suffix": tokenizer.suffix_search,
        "infix": tokenizer.infix_finditer,
        "url": tokenizer.url_match,
    }
    orth = spacy.attrs.ORTH
    special = {word: [token[orth] for token in tokens] for word, tokens in tokenizer.rules.items()}
    return {name: _in_javascript(find.__self__.pattern) for name, find in patterns.items()} | {"special": special}


def _in_javascript(pattern: str) -> str:
    r"""Convert a pattern of Python to JavaScript (flag u), where ``\w`` must still match all letters."""
    result: list[str] = []
    inside = False  # a class of characters
    for long, code, escaped, plain in _TOKEN.findall(pattern.removeprefix("(?u)")):
        if long:
            result.append(f"\\u{{{int(long, 16):x}}}")
        elif code:
            result.append(f"\\{code}")
        elif escaped:
            result.append(_escape_in_javascript(escaped, inside=inside))
        else:
            inside = plain == "[" or (inside and plain != "]")
            result.append(plain)
    return "".join(result)


def _escape_in_javascript(character: str, *, inside: bool) -> str:
    """Return JavaScript's form of a backslash and a character, inside or outside of a class of characters."""
    if character.lower() in _CLASSES:
        negated = "^" if character.isupper() else ""
        return _CLASSES[character] if inside else f"[{negated}{_CLASSES[character.lower()]}]"
    keeps_backslash = character in _SYNTAX or character.isalnum() or (inside and character == "-")
    return f"\\{character}" if keeps_backslash else character
