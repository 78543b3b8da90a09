"""Convert text to arrays of code points, and find the letters among them. Shapes: M characters."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["are_letters", "code_points", "text_of"]

PLANE = 0x10000  # code points of the Basic Multilingual Plane


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of a text (M,)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def text_of(codes: NDArray[np.uint32]) -> str:
    """Return the text of code points (M,)."""
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


def are_letters(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return whether each code point is a letter or a combining mark (M,)."""
    letters = letter_table()[np.minimum(codes, PLANE - 1)]
    beyond = np.flatnonzero(codes >= PLANE)
    letters[beyond] = [is_letter(code) for code in codes[beyond].tolist()]
    return letters


def is_letter(code: int) -> bool:
    """Return whether a code point is a letter or a combining mark."""
    return unicodedata.category(chr(code))[0] in "LM"


@lru_cache(1)
def letter_table() -> NDArray[np.bool_]:
    """Return whether each code point of the Basic Multilingual Plane is a letter or a combining mark (PLANE,)."""
    return np.array([is_letter(code) for code in range(PLANE)])
