"""Find defects of a line of text (damaged encoding, repetitions); extract its letters to compare two lines."""

from __future__ import annotations

import re
from typing import Literal

from bitext.repairs import CLOSED_LETTER, is_escaped, repair_mojibake

LEAST_WORDS = 4  # words of a copy that counts: shorter copies are names, numbers, exclamations
_NOT_LETTERS = re.compile(r"[\W_]+")
_REPEATED_IN_A_ROW = re.compile(
    r"(?:^|\s)((?:\S+\s+){0,3}\S+)(?:\s+\1){3,}(?=\s|$)"
)  # up to four words, four times
_REPEATED_LETTERS = re.compile(r"(\S{1,6}?)\1{7,}")  # in scripts without blanks: up to six letters, eight times

# misread: UTF-8 or Korean bytes read as Latin characters. lost: letters became U+FFFD, or a line question marks.
# question: a question mark inside a word, which may also be a missing blank. entities: HTML entities.
Damage = Literal["misread", "lost", "question", "entities"]
Segmentation = Literal["pieces", "tokenised"]

# A run of characters that may be the bytes of one or more letters, read one by one.
_RUN = re.compile(r"[^\x00-\x7f]{2,}")
# Characters of misread UTF-8 after repair: accented Latin, punctuation; kana, Hangul, Han; Greek, Cyrillic.
_WESTERN, _ASIAN, _OTHER = (
    "\x80-\u017f\u2010-\u206f\u20ac",
    "\u3000-\u30ff\u3130-\u318f\u4e00-\u9fff가-힣",
    "\u0370-\u04ff",
)
_RARER = re.compile(f"[{_WESTERN}]+|[{_WESTERN}{_ASIAN}]{{2,}}")
_CODECS = {  # beside those of `repair_mojibake`; correct text may look like text that was misread in them
    **dict.fromkeys(("cp1250", "mac_roman", "cp437", "cp850"), _RARER),
    "cp1251": re.compile(f"{_RARER.pattern}|[{_OTHER}]{{2,}}"),
}
# Used by no language: control characters; in a word of small Latin letters signs, capitals with a mark, letters
# of other scripts (apart from beta, which stands for the sharp s), half-width kana.
_STRANGE = re.compile(
    r"[\x80-\x84\x86-\x9f]"
    r"|[a-zß-ÿ](?:[\u2500-\u259f¸‰ˆ÷¬¤¶‹√∂∏∑ƒ≈ⁿÀ-ÖØ-Þ]|[\u0370-\u03b1\u03b3-\u052f]{1,3})[a-zß-ÿ]"
    r"|[a-zß-ÿ]{2}[\u0370-\u03b1\u03b3-\u052f]|[\u0370-\u03b1\u03b3-\u052f][a-zß-ÿ]{2}"
    r"|[a-z][\uff61-\uff9f]|[\uff61-\uff9f][a-z]"
)
_ASIAN_LETTER = re.compile(f"[{_ASIAN}]")
_IN_WORD = re.compile(f"[a-zß-ÿ][{_ASIAN}]{{1,2}}[a-zß-ÿ]")
_HANGUL = re.compile("[가-힣]{3,}")  # a run of three syllables is no coincidence
_LOST_LETTER = re.compile(r"[^\W\d_]\?{1,3}[a-zß-ÿ]")
_ESCAPED_LETTER = re.compile(
    r"&(?:#\d{3,5}|#x[0-9a-fA-F]{2,5}|[A-Za-z]{1,2}(?:uml|acute|grave|circ|cedil|tilde|ring|slash|lig));"
    r"|\\u[0-9a-fA-F]{4}"
)
# Pieces of subword-nmt (`Pu@@ der`), SentencePiece (`▁Pu der`) and WordPiece (`Pu ##der`), in no line of 27 corpora
# of plain text; punctuation apart from its word, or Moses' mark of a split hyphen, in at most 3 % of their lines,
# and in at least 55 % of the lines of each of three tokenised corpora.
_SEGMENTED: dict[Segmentation, re.Pattern[str]] = {
    "pieces": re.compile(r"[^\W_](?:@@ | ##[^\W_])|▁[^\W_]"),
    "tokenised": re.compile(r" (?:[.,。、](?: |$)|@-@ )"),
}
SEGMENTED_SHARE: dict[Segmentation, float] = {
    "pieces": 0.01,
    "tokenised": 0.1,
}  # of the lines of a plain text, at most
_MOST_LOST = 0.5  # share of question marks among visible characters, above which a line is lost


def damage(text: str) -> Damage | None:
    """Return the kind of damage of a text, None if there is none.

    A run of Latin characters counts as misread if its bytes are valid UTF-8, or valid Korean (CP949), of sensible
    characters: correct text is hardly ever valid, because each lead byte needs its continuation bytes.
    """
    if _badly_decoded(text):
        return "lost" if "\ufffd" in text or _mostly_question_marks(text) else "misread"
    if "?" in text and _LOST_LETTER.search(text):
        return "question"
    return "entities" if is_escaped(text) else None


def segmentation(text: str) -> Segmentation | None:
    """Return whether a text is cut into pieces of words, or into words and punctuation; None for plain text."""
    return next((kind for kind, pattern in _SEGMENTED.items() if pattern.search(text)), None)


def _badly_decoded(text: str) -> bool:
    """Return whether letters of a text are lost or misread."""
    if "?" in text and _mostly_question_marks(text):
        return True
    if text.isascii():
        return False
    if "\ufffd" in text or _STRANGE.search(text) or repair_mojibake(text) != text:
        return True
    if any(map(_misread, _RUN.findall(CLOSED_LETTER.sub(" ", text)))):
        return True
    # Chinese or Japanese may be between Latin words, but rare letters of it are not inside them.
    return bool(_IN_WORD.search(text)) and 4 * len(_ASIAN_LETTER.findall(text)) < len(text)


def unreadable(text: str) -> bool:
    """Return whether letters of a text are lost, misread, or written as escapes or entities."""
    if _badly_decoded(text) or ("?" in text and "://" not in text and _LOST_LETTER.search(text)):
        return True
    return ("&" in text or "\\u" in text) and bool(_ESCAPED_LETTER.search(text))


def _mostly_question_marks(text: str) -> bool:
    visible = sum(map(len, text.split()))
    return visible > 4 and text.count("?") > _MOST_LOST * visible


def _misread(run: str) -> bool:
    """Return whether a run of characters is other text whose bytes were decoded wrongly."""
    for codec in ("cp1252", "latin-1", *_CODECS):
        try:
            raw = run.encode(codec)
        except UnicodeEncodeError:
            continue
        for encoding, expected in (("utf-8", _CODECS.get(codec)), ("cp949", _HANGUL)):
            try:
                if expected and expected.fullmatch(raw.decode(encoding)):
                    return True
            except UnicodeDecodeError:
                continue
    return False


def repeats(text: str) -> bool:
    """Return whether a text repeats the same words or letters many times in a row."""
    return bool(_REPEATED_IN_A_ROW.search(text) or _REPEATED_LETTERS.search(text))


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return _NOT_LETTERS.sub("", text.casefold())
