"""Reserved symbols: tokens that no text spells, which the program sets before or between the tokens of a text.

A marked text holds some of them as noncharacters of Unicode (U+FDD0 to U+FDEF), which are kept free for such use.
"""

from __future__ import annotations

import re

_FIRST = 0xFDD0
TERM_SYMBOLS = ("<term>", "</term>")  # around the translation of a term that is in the place of the term
KEEP_SYMBOLS = tuple(f"<keep-{number}>" for number in range(1, 9))  # in the place of texts that are kept
_IN_TEXT = (*TERM_SYMBOLS, *KEEP_SYMBOLS)

MARKS = {symbol: chr(_FIRST + index) for index, symbol in enumerate(_IN_TEXT)}
SYMBOLS = {mark: symbol for symbol, mark in MARKS.items()}
MARK = re.compile(f"([{''.join(SYMBOLS)}])")


def language_symbol(language: str) -> str:
    """Return the symbol that begins a translation into a language: ``<to-fr>``."""
    return f"<to-{language}>"


def remove_marks(text: str) -> str:
    """Remove the noncharacters of marks from a text of a user, before the program marks it."""
    return MARK.sub("", text)
