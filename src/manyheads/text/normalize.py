"""Normalise text before it is tokenised; both sides of a translation have their own normal form."""

from __future__ import annotations

import re
import unicodedata
from functools import partial

from manyheads.unicode import on_known

# Control characters that are no white space, and the byte order mark.
_REMOVED = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n?")
_COMPOSE = partial(unicodedata.normalize, "NFC")

NORMAL_FORM = 1  # version of the normal forms of sources and targets that new runs have; 0 is `normalize` for both
_NO_BREAK = re.compile("[\u00a0\u202f]")
_SPACES = re.compile(r"\s+")
# Digraphs and ligatures of Latin, Armenian and Arabic; half-width katakana; letters of formulas.
_FOLDED = (
    "\u0132\u0133\u01c4-\u01cc\u01f1-\u01f3\ufb00-\ufb06\ufb13-\ufb17\ufb50-\ufbb1\ufbd3-\ufc5d\ufc64-\ufd3d"
    "\ufe80-\ufefc\uff61-\uff9f\U0001d400-\U0001d7ff"
)
MARKS = {  # patterns of `without_marks`, which the web page reads too
    # Soft hyphens, marks of direction, word joiners and invisible signs of formulas.
    "invisible": "[\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f]+",
    # Scripts without blanks between words (line breaking class SA), in which U+200B divides words.
    "unspaced": "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf]",
    "wide": f"[{_FOLDED}\uff01-\uff5e]+",
    # Beside Chinese or Japanese, full-width marks are right, but not in numbers of full-width digits.
    "eastAsian": "[\u3040-\u312f\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]",
    "eastAsianWide": "[\uff10-\uff19]+(?:[\uff0c\uff0e\uff1a][\uff10-\uff19]+)+"
    f"|[{_FOLDED}\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]+",
}
_INVISIBLE, _UNSPACED, _WIDE, _EAST_ASIAN, _EAST_ASIAN_WIDE = map(re.compile, MARKS.values())
_MARKED = re.compile(f"{MARKS['invisible']}|\u200b|{MARKS['wide']}")


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


def without_marks(text: str) -> str:
    """Write a text without typographic marks; ordinary text is returned as it is.

    Soft hyphens, word joiners and marks of direction are removed; U+200B too, unless the text is of a script that
    divides words by it. Ligatures, and full-width letters and digits become plain; full-width marks too, unless the
    text is Chinese or Japanese. Joiners (U+200C, U+200D) are kept: scripts and emoji need them.
    """
    if not _MARKED.search(text):
        return text
    text = _INVISIBLE.sub("", text)
    if not _UNSPACED.search(text):
        text = text.replace("\u200b", "")
    wide = _EAST_ASIAN_WIDE if _EAST_ASIAN.search(text) else _WIDE
    return wide.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


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
