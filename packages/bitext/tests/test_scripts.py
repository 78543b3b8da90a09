"""Scripts and words are known by language code."""

from __future__ import annotations

import pytest

from bitext.languages import normal_form
from bitext.scripts import _SCRIPTS_OF, FREQUENT, SCRIPTS, frequent_words, scripts_of


@pytest.mark.parametrize(
    ("codes", "scripts"),
    [
        ("de deu de-AT ger_Latn sr-Latn zh-Latn vi", ["latin"]),
        ("ja jpn jpn_Jpan", ["kana", "han"]),
        ("zh zho cmn_Hans zh-TW yue", ["han"]),
        ("ko kor kor_Hang", ["hangul"]),
        ("sr srp_Cyrl kk ru", ["cyrillic"]),
        ("xx src km", []),
    ],
)
def test_the_script_of_a_code_is_known(codes: str, scripts: list[str]) -> None:
    for code in codes.split():
        assert list(scripts_of(code)) == scripts, code


def test_frequent_words_are_of_the_language_in_latin_letters() -> None:
    assert frequent_words("deu") == frequent_words("de_AT") == FREQUENT["de"].split()
    assert [list(frequent_words(code)) for code in ("en-Cyrl", "ko", "xx")] == [[], [], []]
    assert [normal_form(code) for code in FREQUENT] == list(FREQUENT)


def test_every_script_of_a_language_is_defined() -> None:
    assert {script for scripts in _SCRIPTS_OF.values() for script in scripts} <= set(SCRIPTS)
