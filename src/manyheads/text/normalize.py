"""Normalise text before it is tokenised."""

from __future__ import annotations

import re
import unicodedata

# Control characters that are no white space, and the byte order mark.
_REMOVED = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n?")


def normalize(text: str) -> str:
    """Normalise a text: texts that look the same get the same token ids.

    The text is cleaned as by `clean`, and every run of white space (tabs, line and page breaks, no-break and wide
    blanks) becomes one blank. Joiners (U+200C, U+200D) are kept: scripts and emoji need them. The function is
    idempotent.
    """
    return " ".join(clean(text).split())


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
    return unicodedata.normalize("NFC", _REMOVED.sub("", join_surrogates(text)))


def join_surrogates(text: str) -> str:
    """Replace surrogates by the characters that they encode, or by U+FFFD."""
    if _SURROGATE.search(text):
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
