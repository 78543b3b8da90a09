"""Write text without typographic marks: soft hyphens, marks of direction, ligatures, full-width letters."""

from __future__ import annotations

import re
import unicodedata

# Digraphs and ligatures of Latin, Armenian and Arabic; half-width katakana; letters of formulas.
_FOLDED = (
    "\u0132\u0133\u01c4-\u01cc\u01f1-\u01f3\ufb00-\ufb06\ufb13-\ufb17\ufb50-\ufbb1\ufbd3-\ufc5d\ufc64-\ufd3d"
    "\ufe80-\ufefc\uff61-\uff9f\U0001d400-\U0001d7ff"
)
MARKS = {  # patterns of `without_marks`, for programs that write them in another language
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
