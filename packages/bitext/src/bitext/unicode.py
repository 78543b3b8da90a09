"""Characters newer than Unicode 14, which some versions of Python know, and others do not.

Everywhere they are symbols without case, compositions or letters, so that a text is read alike in each of them.
Characters of planes 2 and 3, which are kept for ideographs, are ideographs, known or not.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path

# Lengths of the ranges with a character in Unicode 14 and of those without one, in turn from U+0000 on, in base 36;
# planes 2 and 3 apart.
_ASSIGNED = Path(__file__).with_name("assigned.txt")
_SYMBOL, _IDEOGRAPH = "\ue000", "\U00020000"  # the properties of characters without one differ between Pythons
_PLACE = "\uffff"  # a code point without a character
# A character outside of large ranges that Unicode 14 has filled.
_UNUSUAL = re.compile(
    "[^\0-\u0377\u0391-\u03a1\u03a3-\u052f\u05d0-\u05ea\u0600-\u070d\u0898-\u0983\u0e01-\u0e3a\u0e3f-\u0e5b\u1000-\u10c5"
    "\u10d0-\u1248\u1780-\u17dd\u1d00-\u1f15\u2000-\u2064\u2074-\u208e\u20a0-\u20c0\u2100-\u218b\u2190-\u2426\u2460-\u2b73"
    "\u3000-\u303f\u3041-\u3096\u3099-\u30ff\u3220-\ua48c\uac00-\ud7a3\ue000-\ufa6d\ufe00-\ufe0f\uff01-\uffbe\U0001f300-\U0001f6d7]"
)


def known(text: str) -> str:
    """Replace each character newer than Unicode 14 by one whose properties are the same in every version."""
    return text if text.isascii() else _UNUSUAL.sub(lambda match: _stand_in(match[0]), text)


def on_known(change: Callable[[str], str], text: str) -> str:
    """Apply a change of case or composition that leaves characters newer than Unicode 14 as they are."""
    unusual = [] if text.isascii() else _UNUSUAL.findall(text)
    new = [character for character in unusual if _stand_in(character) == _SYMBOL]
    if not new:
        return change(text)
    changed, rest = change(text.translate(dict.fromkeys(map(ord, new), _PLACE))), iter(new)
    return re.sub(_PLACE, lambda _: next(rest), changed)


@lru_cache(8_192)
def _stand_in(character: str) -> str:
    if 0x20000 <= ord(character) < 0x40000:
        return _IDEOGRAPH
    return _SYMBOL if bisect_right(_borders(), ord(character)) % 2 else character


@cache
def _borders() -> tuple[int, ...]:
    """Return the code points at which ranges without and with a character begin, in turn."""
    return tuple(accumulate(int(length, 36) for length in _ASSIGNED.read_text(encoding="ascii").split()))
