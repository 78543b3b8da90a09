"""Recognise text that was read or written with the wrong encoding."""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["Damage", "damage"]

# misread: UTF-8 or Korean bytes read as Latin characters. lost: letters became U+FFFD, or a line question marks.
# question: a question mark inside a word, which may also be a missing blank. entities: the writing of web pages.
Damage = Literal["misread", "lost", "question", "entities"]

# What the bytes 0x80 to 0xFF become when they are read as Windows-1252 or Latin-1; two of them at the least.
LATIN = re.compile("[\x80-\xffŒœŠšŸŽžƒˆ˜–—‘’‚“”„†‡•…‰‹›€™]{2,}")
# What misread UTF-8 turns out to be: Latin letters with marks, Greek, Cyrillic, punctuation, kana, Hangul, Han.
SENSIBLE = re.compile("[\xa0-\u017f\u0370-\u04ff\u2010-\u206f\u20ac\u3000-\u30ff\u3130-\u318f\u4e00-\u9fff가-힣]+")
HANGUL = re.compile("[가-힣]{3,}")  # so many syllables do not come about by chance
LOST_LETTER = re.compile(r"[^\W\d_]\?[a-zß-ÿ]")
ENTITY = re.compile(r"&(amp|lt|gt|quot|apos|nbsp|#\d{2,5}|#x[0-9a-fA-F]{2,5});")
MOST_LOST = 0.5  # question marks among what is not blank, from where on a line is lost


def damage(text: str) -> Damage | None:
    """Return the kind of damage of a text, None if there is none.

    A run of Latin characters counts as misread if its bytes are valid UTF-8, or valid Korean (CP949), of sensible
    characters: text that is meant as it stands is that hardly ever, as one lead byte needs its continuation.
    """
    if "\ufffd" in text or mostly_question_marks(text):
        return "lost"
    if not text.isascii() and any(misread(run) for run in LATIN.findall(text)):
        return "misread"
    if "?" in text and LOST_LETTER.search(text):
        return "question"
    return "entities" if "&" in text and ENTITY.search(text) else None


def mostly_question_marks(text: str) -> bool:
    """Return whether hardly anything but question marks is left of a line."""
    visible = [symbol for symbol in text if not symbol.isspace()]
    return len(visible) > 4 and visible.count("?") > MOST_LOST * len(visible)


def misread(run: str) -> bool:
    """Return whether a run of Latin characters is other text whose bytes were decoded wrongly."""
    for codec in ("cp1252", "latin-1"):
        try:
            raw = run.encode(codec)
        except UnicodeEncodeError:
            continue
        for encoding, expected in (("utf-8", SENSIBLE), ("cp949", HANGUL)):
            try:
                if expected.fullmatch(raw.decode(encoding)):
                    return True
            except UnicodeDecodeError:
                continue
    return False
