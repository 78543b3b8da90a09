"""Match the languages that the user wrote with the language names of a file."""

from __future__ import annotations

import pytest

from bitext.errors import DataError, UsageError
from bitext.formats.text import (
    Skipped,
    TextRequest,
    choose_languages,
    find_statement,
    match_language,
    pairs_of_units,
)


@pytest.mark.parametrize(
    ("wanted", "present", "found"),
    [
        ("de", ["en", "de-AT", "de"], "de"),
        ("de", ["en", "de-AT", "DE_DE"], "DE_DE"),
        ("zh", ["zh-TW", "en", "zh_CN"], "zh_CN"),
        ("zho", ["zh-Hant", "en"], None),
        ("ger", ["EN", "DE"], "DE"),
        ("pt-BR", ["pt", "PT_br"], "PT_br"),
        ("ko", ["de", "en"], None),
        ("ko", ["", "en"], ""),
    ],
)
def test_a_language_matches_its_exact_name_before_a_regional_variant(
    wanted: str, present: list[str], found: str
) -> None:
    assert match_language(wanted, present) == found


@pytest.mark.parametrize(
    ("request_", "present", "chosen"),
    [
        (TextRequest("a", "b"), [], ("a", "b")),
        (TextRequest(), ["DE", "en-US"], ("de", "en-US")),
        (TextRequest(target="de"), ["DE", "en"], ("en", "de")),
        (TextRequest("en"), ["DE", "en"], ("en", "de")),
    ],
)
def test_two_languages_are_chosen_from_the_request_and_the_file(
    request_: TextRequest, present: list[str], chosen: tuple[str, str]
) -> None:
    assert choose_languages(request_, present, "x") == chosen


@pytest.mark.parametrize(
    ("request_", "present"), [(TextRequest(), ["de", "en", "fr"]), (TextRequest("de"), ["de"])]
)
def test_fewer_or_more_than_two_languages_are_not_guessed(request_: TextRequest, present: list[str]) -> None:
    with pytest.raises(UsageError, match="x: the languages are not clear; it names de"):
        choose_languages(request_, present, "x")


def test_one_text_is_never_both_sides() -> None:
    """In each unit both requested languages match the same text, which has no translation."""
    _, pairs = pairs_of_units(
        iter([{"de": "a", "en-GB": "b"}, {"en": "c"}]), TextRequest("en-US", "en-GB"), "x", Skipped()
    )
    assert list(pairs) == [("", ""), ("", "")]
    with pytest.raises(DataError, match="x holds no translation"):
        pairs_of_units(iter([]), TextRequest(), "x", Skipped())


def test_a_statement_of_a_header_is_read_after_its_colon() -> None:
    assert find_statement("Licensed to you\n  * License :  CC  BY\n", what="licen[cs]e") == "CC BY"
    assert find_statement("no licence", what="licen[cs]e") is None
