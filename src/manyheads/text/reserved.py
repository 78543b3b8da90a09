"""Reserved symbols: tokens that no text spells, which the program sets before or between the tokens of a text.

In a text, the symbols of hints and placeholders are noncharacters of Unicode (U+FDD0 to U+FDEF), which are kept
free for such use.
"""

from __future__ import annotations

import re

_FIRST = 0xFDD0
TERM_SYMBOLS = ("<term>", "</term>")  # around the translation of a term that is in the place of the term
PLACEHOLDERS = tuple(f"<keep-{number}>" for number in range(1, 9))  # in the place of literals

NONCHARACTERS = {symbol: chr(_FIRST + index) for index, symbol in enumerate((*TERM_SYMBOLS, *PLACEHOLDERS))}
SYMBOLS = {character: symbol for symbol, character in NONCHARACTERS.items()}
NONCHARACTER = re.compile(f"([{''.join(SYMBOLS)}])")


def language_symbol(language: str) -> str:
    """Return the symbol that begins a translation into a language: ``<to-fr>``."""
    return f"<to-{language}>"


def remove_noncharacters(text: str) -> str:
    """Remove the noncharacters of reserved symbols from a text of a user, before the program sets its own."""
    return NONCHARACTER.sub("", text)
