"""Defects of a line of text: a damaged encoding, repetitions; and its letters, to compare it with another line."""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["LEAST_WORDS", "badly_decoded", "damage", "letters_of", "repeats"]

LEAST_WORDS = 4  # of a copy that counts: shorter ones are names, numbers, exclamations
NOT_LETTERS = re.compile(r"[\W_]+")
REPEATED_IN_A_ROW = re.compile(r"(?:^|\s)((?:\S+\s+){0,3}\S+)(?:\s+\1){3,}(?=\s|$)")  # up to four words, four times
REPEATED_LETTERS = re.compile(r"(\S{1,6}?)\1{7,}")  # in scripts without blanks: up to six letters, eight times

# misread: UTF-8 or Korean bytes read as Latin characters. lost: letters became U+FFFD, or a line question marks.
# question: a question mark inside a word, which may also be a missing blank. entities: the writing of web pages.
Damage = Literal["misread", "lost", "question", "entities"]

# What the bytes 0x80 to 0xFF become when they are read as Windows-1252 or Latin-1; two of them at the least.
LATIN = re.compile("[\x80-\xffŒœŠšŸŽžƒˆ˜–—‘’‚“”„†‡•…‰‹›€™]{2,}")
# What misread UTF-8 turns out to be: Latin letters with marks, Greek, Cyrillic, punctuation, kana, Hangul, Han.
SENSIBLE = re.compile("[\xa0-\u017f\u0370-\u04ff\u2010-\u206f\u20ac\u3000-\u30ff\u3130-\u318f\u4e00-\u9fff가-힣]+")
HANGUL = re.compile("[가-힣]{3,}")  # a run of three syllables is no coincidence
LOST_LETTER = re.compile(r"[^\W\d_]\?[a-zß-ÿ]")
ENTITY = re.compile(r"&(amp|lt|gt|quot|apos|nbsp|#\d{2,5}|#x[0-9a-fA-F]{2,5});")
MOST_LOST = 0.5  # question marks among what is not blank, from where on a line is lost


def damage(text: str) -> Damage | None:
    """Return the kind of damage of a text, None if there is none.

    A run of Latin characters counts as misread if its bytes are valid UTF-8, or valid Korean (CP949), of sensible
    characters: correct text hardly ever is, because each lead byte needs its continuation bytes.
    """
    if badly_decoded(text):
        return "lost" if "\ufffd" in text or mostly_question_marks(text) else "misread"
    if "?" in text and LOST_LETTER.search(text):
        return "question"
    return "entities" if "&" in text and ENTITY.search(text) else None


def badly_decoded(text: str) -> bool:
    """Return whether letters of a text are lost or misread."""
    if "?" in text and mostly_question_marks(text):
        return True
    return not text.isascii() and ("\ufffd" in text or any(map(misread, LATIN.findall(text))))


def mostly_question_marks(text: str) -> bool:
    """Return whether most visible characters of a line are question marks."""
    visible = sum(map(len, text.split()))
    return visible > 4 and text.count("?") > MOST_LOST * visible


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


def repeats(text: str) -> bool:
    """Return whether a text repeats itself again and again."""
    return bool(REPEATED_IN_A_ROW.search(text) or REPEATED_LETTERS.search(text))


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return NOT_LETTERS.sub("", text.casefold())
