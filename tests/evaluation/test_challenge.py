"""Outputs that fail on a challenging input are counted, and good outputs are not."""

from __future__ import annotations

import pytest

from manyheads.evaluation.challenge import Case, Figure, Group, Limit, judge, lines_of


def figures(
    name: str, cases: list[Case], outputs: list[str], usual: dict[str, str] | None = None
) -> dict[str, Figure]:
    return {figure.name: figure for figure in judge(Group(name, cases), outputs, usual or {})}


def is_repeated(output: str, source: str, group: str = "capitals") -> bool:
    return figures(group, [Case(source)], [output])["repeated"].value == 1


@pytest.mark.parametrize(
    ("output", "source"),
    [
        ("A house house.", "Ein Haus."),
        ("ODDDDDDDDDDD...", "HUND"),
        ("in the list of the list of the", "In der Liste."),
        ("Bototototothe", "Hund"),
        ("The The dog", "Der Hund"),
    ],
)
def test_a_repetition_is_found(output: str, source: str) -> None:
    assert is_repeated(output, source)


@pytest.mark.parametrize(
    ("output", "source"),
    [
        ("A dog and a cat.", "Ein Hund und eine Katze."),
        ("no, no", "nein, nein"),
        ("www.example.org", "www.example.org"),
        ("committee", "Ausschuss"),
        ("Aaaaah!", "Aaaaah!"),
        ("", "Hund"),
    ],
)
def test_a_sound_output_or_a_repetition_of_the_source_is_not_repeated(output: str, source: str) -> None:
    assert not is_repeated(output, source)


def test_any_word_that_occurs_twice_in_the_output_of_a_single_word_is_a_repetition() -> None:
    assert is_repeated("house is the house.", "Haus", "single words")
    assert not is_repeated("house is the house.", "Haus ist das Haus.")


def test_single_words_are_counted_if_repeated_or_longer_than_three_words() -> None:
    cases = [Case("Haus"), Case("Hund"), Case("ja"), Case("Zwei")]
    found = figures("single words", cases, ["house", "a dog dog", "in the old house", "Zwei"])
    figure = found["repeated or longer than 3 words"]
    assert figure.value == 0.5
    assert figure.examples == (("Hund", "a dog dog"), ("ja", "in the old house"))
    assert not figure.good
    assert found["source copied"].value == 0.25
    assert found["source copied"].good, "names are copied: for information"


def test_texts_are_kept_if_the_output_holds_them_unchanged_and_in_order() -> None:
    cases = [Case("<b>Haus</b>", ("<b>", "</b>")), Case("um 17:45", ("17:45",))]
    assert figures("tags", cases, ["<b>house</b>", "at 17:45"])["kept"].value == 1
    assert figures("tags", cases, ["</b>house<b>", "at 17:44"])["kept"].value == 0
    assert figures("tags", cases, ["house", "at 17:45"])["kept"].value == 0.5
    assert figures("tags", cases, ["<b>house", "at 17:45 or 17:45"])["kept"].value == 0.5


@pytest.mark.parametrize(
    ("output", "parts", "kept", "whole"),
    [
        ("He has {n} of 12 seats.", 1, 1, 1),
        ("Of 12 seats he has {n}.", 1, 1, 1),
        ("He has {n} of 12 seats.", 2, 1, 0),
        ("He has {n} of 120 seats.", 1, 0, 0),
        ("He has {n} of 12 of 12 seats.", 1, 0, 0),
        ("He has {m} of 12 seats.", 1, 0, 0),
    ],
)
def test_texts_inside_of_a_sentence_are_kept_once_each_in_any_order_and_a_cut_sentence_is_counted(
    output: str, parts: int, kept: int, whole: int
) -> None:
    group = Group("texts inside of sentences", [Case("Er hat {n} von 12 Plätzen.", ("{n}", "12"), kind="numbers")])
    found = {figure.name: figure for figure in judge(group, [output], {}, [parts])}
    assert found["kept once each"].value == found["of these: numbers"].value == kept
    assert found["kept once each, sentence not cut"].value == whole
    assert found["kept once each, sentence not cut"].good == bool(whole)
    assert found["of these: numbers"].verdict == "for information"


def test_capitals_are_compared_with_the_usual_form_regardless_of_case() -> None:
    cases = [
        Case("EIN HAUS", reference="a house", usual="Ein Haus"),
        Case("EIN HUND", reference="a dog", usual="Ein Hund"),
    ]
    usual = {"Ein Haus": "a house", "Ein Hund": "a dog"}
    name = "chrF, compared with the usual form"
    assert figures("capitals", cases, ["A HOUSE", "A DOG"], usual)[name].value == 1
    worse = figures("capitals", cases, ["A HOUSE", "XYZ"], usual)[name]
    assert worse.value < 0.9
    assert not worse.good
    assert worse.examples[0] == ("EIN HUND", "XYZ"), "the most different first"


def test_words_made_up_for_an_empty_looking_line_are_counted() -> None:
    found = figures("empty-looking lines", [Case("."), Case(" ")], ["Yes.", ""])
    assert found["words made up"].value == 0.5


def test_a_figure_is_judged_by_its_limit_and_bad_figures_are_shown_with_examples() -> None:
    bad = Figure("kept", 0.5, Limit(0.98, least=True), (("x" * 100, ""),))
    good = Figure("repeated", 0.01, Limit(0.03), (("a", "b b"),))
    assert (bad.good, good.good, Figure("copied", 1.0).good) == (False, True, True)
    assert bad.verdict == "too low: at least 98% is good"
    lines = list(lines_of(Group("URLs", [Case("x")]), [bad, good]))
    assert lines[2].endswith("… -> (nothing)")
    assert not any("b b" in line for line in lines)
    assert list(lines_of(Group("capitals", [], "no text"), [])) == ["capitals: not measured, no text"]
