"""Korean particles, verb endings and numerals, computed from syllable blocks.

A syllable block is 0xAC00 + (initial * 21 + vowel) * 28 + final; most endings depend on the final consonant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tools.corpora.english import EnglishVerb

__all__ = ["Predicate", "directional", "final", "native_numeral", "particle", "sino_numeral", "with_final"]

FIRST_SYLLABLE, FINALS = 0xAC00, 28
NONE, NIEUN, RIEUL, SSANG_SIOS = 0, 4, 8, 20  # numbers of the final consonants: none, ㄴ, ㄹ, ㅆ
PARTICLES = {  # after a final consonant, after a vowel
    "topic": ("은", "는"),
    "subject": ("이", "가"),
    "object": ("을", "를"),
    "with": ("과", "와"),
    "is": ("이에요", "예요"),
    "was": ("이었어요", "였어요"),
}
CONTRACTED = {("저", "subject"): "제가"}
SINO_DIGITS = ("", "일", "이", "삼", "사", "오", "육", "칠", "팔", "구")
SINO_UNITS = ((1_000, "천"), (100, "백"), (10, "십"))
NATIVE_ONES = ("", "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉")
NATIVE_TENS = ("", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔")


def final(word: str) -> int:
    """Return the number of the final consonant of a word; 0 is none."""
    return (ord(word[-1]) - FIRST_SYLLABLE) % FINALS


def with_final(word: str, consonant: int) -> str:
    """Add a final consonant to the last syllable of a word, which has none: 가 + ㄴ -> 간."""
    return word[:-1] + chr(ord(word[-1]) + consonant)


@cache
def particle(word: str, kind: str) -> str:
    """Append the particle of a kind to a word: 책은, 사과는."""
    closed_form, open_form = PARTICLES[kind]
    return CONTRACTED.get((word, kind)) or word + (closed_form if final(word) else open_form)


def directional(word: str) -> str:
    """Append (으)로 to a word: 버스로, 지하철로, 트럭으로."""
    return word + ("로" if final(word) in (NONE, RIEUL) else "으로")


def sino_numeral(value: int) -> str:
    """Write 1 to 99 999 999 in Sino-Korean numerals, ten thousands apart: 15 -> 십오, 35000 -> 삼만 오천."""
    high, value = divmod(value, 10_000)
    text = "만" if high == 1 else f"{sino_numeral(high)}만" if high else ""
    text += " " if high and value else ""
    for unit, name in SINO_UNITS:
        digit, value = divmod(value, unit)
        if digit:
            text += ("" if digit == 1 else SINO_DIGITS[digit]) + name
    return text + SINO_DIGITS[value]


def native_numeral(value: int) -> str:
    """Write 1 to 99 in native numerals as before a counter: 3 -> 세, 20 -> 스무, 21 -> 스물한."""
    tens, ones = divmod(value, 10)
    return "스무" if value == 20 else NATIVE_TENS[tens] + NATIVE_ONES[ones]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A verb or adjective by the three stem forms that all other forms are built from.

    Attributes:
        stem: the form before consonants (먹-고, 듣-고, 만들-고).
        infinitive: the form before -요, -서, and the past (먹어, 들어, 만들어).
        base: the form before -ㄴ, -ㄹ, -시- and, unless the stem ends in ㄹ, -면, -려고 (먹으, 들으, 만드).
        english: the English verb; an adjective has only its base form.
        honorific: the base that takes -시- (먹으 is replaced by 드, 자 by 주무).
    """

    stem: str
    infinitive: str
    base: str
    english: EnglishVerb
    honorific: str

    @property
    def liquid(self) -> bool:
        """Whether the stem ends in ㄹ, which is dropped before ㄴ and ㅅ."""
        return final(self.stem) == RIEUL

    @property
    def is_hada(self) -> bool:
        """Whether it is a 하다 verb, which is negated with -지 않다."""
        return len(self.stem) > 1 and self.stem.endswith("하")

    def conditional_stem(self) -> str:
        """Return the form before -면, -려고 and -러: 먹으, 가, 만들."""
        return self.stem if self.liquid else self.base

    def past_stem(self) -> str:
        """Return the past stem: 먹었, 갔, 했."""
        return with_final(self.infinitive, SSANG_SIOS)

    def future_stem(self) -> str:
        """Return the future stem: 먹을, 갈, 만들."""
        return with_final(self.base, RIEUL)

    def attributive(self) -> str:
        """Return the attributive form: past of a verb (먹은, 만든), present of an adjective (작은, 재미있는)."""
        return f"{self.stem}는" if self.stem[-1] in "있없" else with_final(self.base, NIEUN)

    def present_attributive(self) -> str:
        """Return the present attributive form of a verb: 먹는, 만드는."""
        return f"{self.base if self.liquid else self.stem}는"
