"""Typographic marks leave a text; letters, joiners and the marks of Chinese and Japanese stay."""

from __future__ import annotations

import pytest

from bitext.typography import without_marks


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Donau\u00addampfer", "Donaudampfer"),
        ("\u202aﬁndet\u202c \ufb00", "findet ff"),
        ("zero\u200bwidth", "zerowidth"),
        ("ภาษา\u200bไทย", "ภาษา\u200bไทย"),  # divides words
        ("ＡＢＣ１２（x）", "ABC12(x)"),
        ("東京（とうきょう）で１２：３０", "東京（とうきょう）で12:30"),
        ("1\u00a0000 Quoi\u202f?", "1\u00a0000 Quoi\u202f?"),
        ("👨\u200d👩 می\u200cشود", "👨\u200d👩 می\u200cشود"),  # joiners
        ("plain text, ä ö", "plain text, ä ö"),
    ],
)
def test_a_text_keeps_what_is_no_mark(text: str, plain: str) -> None:
    assert without_marks(text) == plain
    assert without_marks(plain) == plain
