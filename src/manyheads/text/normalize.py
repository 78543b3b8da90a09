"""Normalise text before it is tokenised; both sides of a translation have their own normal form."""

from __future__ import annotations

import re
import unicodedata
from functools import partial

from bitext.typography import without_marks
from bitext.unicode import on_known

# Control characters that are no white space, and the byte order mark.
_REMOVED = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n?")
_COMPOSE = partial(unicodedata.normalize, "NFC")

NORMAL_FORM = 1  # version of the normal forms of sources and targets that new runs have; 0 is `normalize` for both
_NO_BREAK = re.compile("[\u00a0\u202f]")
_SPACES = re.compile(r"\s+")


def normalize(text: str) -> str:
    """Normalise a text: texts that look the same get the same token ids.

    The text is cleaned as by `clean`, and every run of white space (tabs, line and page breaks, no-break and wide
    blanks) becomes one blank. Joiners (U+200C, U+200D) are kept: scripts and emoji need them. The function is
    idempotent.
    """
    return " ".join(clean(text).split())


def normalize_target(text: str) -> str:
    """Normalise as `normalize`, but keep no-break blanks (U+00A0, U+202F), as before a French question mark.

    A run of white space stays a no-break blank if it holds nothing else.
    """
    if not _NO_BREAK.search(text):
        return normalize(text)
    return _SPACES.sub(lambda run: " " if _NO_BREAK.sub("", run[0]) else run[0][0], clean(text))


def source_form(text: str) -> str:
    """Write a source without typographic marks (`without_marks`), and with plain blanks for no-break blanks."""
    return text if text.isascii() else _NO_BREAK.sub(" ", without_marks(text))


def clean(text: str) -> str:
    """Remove characters that are not text, and white space at both ends; white space inside is kept.

    Control characters and byte order marks are removed, surrogates become the characters that they encode or
    U+FFFD, and characters are composed (Unicode NFC), so that Hangul typed on a Mac (NFD) equals Hangul typed
    elsewhere.
    """
    return _one_form(text).strip()


def unify(text: str) -> str:
    r"""Clean a text as `clean` does, but keep white space at both ends, and end every line with "\n"."""
    return _LINE_END.sub("\n", _one_form(text))


def _one_form(text: str) -> str:
    """Remove characters that are not text, and compose the others."""
    return on_known(_COMPOSE, _REMOVED.sub("", join_surrogates(text)))


def join_surrogates(text: str) -> str:
    """Replace surrogates by the characters that they encode, or by U+FFFD."""
    if _SURROGATE.search(text):
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
