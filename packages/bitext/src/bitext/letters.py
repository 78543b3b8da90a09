"""Convert text to arrays of code points, find letters, tell text from nothing. Shapes: M characters."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bitext.unicode import known

_PLANE = 0x10000  # code points of the Basic Multilingual Plane
# Invisible are white space, control characters, Default_Ignorable_Code_Point of Unicode (zero width, soft hyphen,
# marks of direction, variation selectors, Hangul fillers), interlinear marks and the Braille blank.
_VISIBLE = re.compile(
    "[^\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def has_text(text: str) -> bool:
    """Return whether a text has a character that can be seen."""
    return _VISIBLE.search(text) is not None


def has_letters(text: str) -> bool:
    """Return whether a text has a letter that can be seen."""
    return any(known(character).isalpha() and has_text(character) for character in text)


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of a text (M,)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def text_of(codes: NDArray[np.uint32]) -> str:
    """Return the text of code points (M,)."""
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


def are_letters(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return whether each code point is a letter or a combining mark (M,)."""
    letters = _letter_table()[np.minimum(codes, _PLANE - 1)]
    beyond = np.flatnonzero(codes >= _PLANE)
    letters[beyond] = [_is_letter(code) for code in codes[beyond].tolist()]
    return letters


def _is_letter(code: int) -> bool:
    """Return whether a code point is a letter or a combining mark."""
    return unicodedata.category(chr(code))[0] in "LM"


@lru_cache(1)
def _letter_table() -> NDArray[np.bool_]:
    """Return whether each code point of the Basic Multilingual Plane is a letter or a combining mark (PLANE,)."""
    return np.array([_is_letter(code) for code in range(_PLANE)])
