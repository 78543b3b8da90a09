"""The one form every text takes before it becomes token ids."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clean", "join_surrogates", "normalize", "unify"]

# Control characters that are no white space, and the byte order mark.
REMOVED = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]")
SURROGATE = re.compile("[\ud800-\udfff]")
LINE_END = re.compile("\r\n?")


def normalize(text: str) -> str:
    """Bring a text to its one form: what looks the same gets the same token ids.

    As `clean`, and every run of white space (tabs, line and page breaks, no-break and wide blanks) becomes one
    blank. Joiners (U+200C, U+200D) stay: scripts and emoji need them. Applying it twice changes nothing more.
    """
    return " ".join(clean(text).split())


def clean(text: str) -> str:
    """Remove what is no text, and leave white space inside as it is.

    Control characters and byte order marks go, surrogates become the characters they stand for or U+FFFD, white
    space around the text goes, and characters are composed (Unicode NFC), so that Hangul typed on a Mac (NFD)
    equals Hangul typed elsewhere.
    """
    return one_form(text).strip()


def unify(text: str) -> str:
    r"""As `clean`, but white space stays around the text too, and every line ends with "\n"."""
    return LINE_END.sub("\n", one_form(text))


def one_form(text: str) -> str:
    """What is no text removed, and each character in its one form."""
    return unicodedata.normalize("NFC", REMOVED.sub("", join_surrogates(text)))


def join_surrogates(text: str) -> str:
    """Surrogates as the characters they stand for, or U+FFFD; all else as it is."""
    if SURROGATE.search(text):
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
