"""A glossary finds its terms as whole words, and refuses pairs that cannot be obeyed, with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.inference.translation.glossary import Glossary, Term, holds_form, holds_phrase, same_stem

PAIRS = {
    "Hund": "dog", "großer Hund": "big dog", "C++": "C++", "서울": "Seoul", "东京": "Tokyo", "हिन्दी": "Hindi",
    "Polish": "polnisch", "polish": "polieren", "e-mail": "E-Mail", "Bus": "coach", "São Paulo": "São Paulo",
    "US": "USA",
}  # fmt: skip


def make_glossary(pairs: dict[str, str]) -> Glossary:
    return Glossary(Term(*pair, f"pair {number}") for number, pair in enumerate(pairs.items(), start=1))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Der Hund, der Hund!", ["dog", "dog"]),
        ("Ein großer Hund bellt.", ["big dog"]),
        ("Ein großer, Hund.", ["dog"]),
        ("EIN GROSSER HUND", ["dog"]),
        ("Hunde", ["dog"]),
        ("des Hundes", ["dog"]),
        ("Hundert Schäferhunde, Hundehütten", []),
        ("Busse", []),
        ("Polish and polish", ["polnisch", "polieren"]),
        ("POLISH", ["polnisch"]),
        ("In C++.", ["C++"]),
        ("mail an e-mail", ["E-Mail"]),
        ("서울에서 서울시로", ["Seoul"]),
        ("我去东京了", ["Tokyo"]),
        ("हिन्दी में", ["Hindi"]),
        ("हिन्दीभाषी", []),
        ("nach São  Paulo", ["São Paulo"]),
        ("give us Us, or the US", ["USA"]),
        ("", []),
    ],
)
def test_terms_are_found_as_whole_words_in_other_case_or_with_an_ending(text: str, found: list[str]) -> None:
    places = make_glossary(PAIRS).find(text)
    assert [place.term.target for place in places] == found
    for place in places:
        words = " ".join(text[place.start : place.end].lower().split())
        assert same_stem(words, place.term.source.lower())


def test_the_longest_term_at_a_place_wins_and_terms_do_not_overlap() -> None:
    glossary = make_glossary({"a b c": "1", "a b": "2", "b c": "3", "c": "4"})
    assert [place.term.target for place in glossary.find("a b c a b b c c a")] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("count", [1, 30])
def test_the_terms_that_are_found_are_those_of_a_search_for_each_term(count: int) -> None:
    words = [f"w{number}" for number in range(count)]
    glossary = make_glossary({f"{first} {second}": "x" for first in words for second in words[::7]})
    text = " ".join(words[number * 5 % count] for number in range(97))
    expected, rest = 0, text.split()
    while len(rest) > 1:
        known = rest[1] in words[::7]
        expected, rest = expected + known, rest[2 if known else 1 :]
    assert len(glossary.find(text)) == expected > 0


def test_a_file_has_a_pair_a_line_and_further_columns_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes("\ufeffHund\tdog\tan animal\r\n\nHund\tdog\n Kin \t Kin\n".encode())
    glossary = Glossary.read(path, ("de", "en"))
    assert [term[:2] for term in glossary.terms] == [("Hund", "dog"), ("Kin", "Kin")]
    assert glossary.terms[1].where == f"{path}, line 4"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Hund\tdog\n\tcat\n", "line 2: the term is empty"),
        (b"Hund\t \n", "line 1: the translation is empty"),
        (b"Hund\tdog\nKatze cat\n", "line 2: there is no tab"),
        (b"Hund\tdog\nKatze\tcat\nHund\thound\n", 'line 3: "Hund" has another translation, "dog", in .*line 1'),
        (b"Hund\tdog\nGr\xf6\xdfe\tsize\n", "line 2: byte 0xF6"),
        (b"en\tde\ndog\tHund\n", 'line 1: the columns are "en" and "de", and the model translates de to en'),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        Glossary.read(path, ("de", "en"))


@pytest.mark.parametrize(
    ("rows", "terms"),
    [
        ("source\ttarget\nHund\tdog", [("Hund", "dog")]),
        ("\n DE \tEN-us\nHund\tdog", [("Hund", "dog")]),
        ("German\tEnglish\tnote\nHund\tdog\tan animal", [("Hund", "dog")]),
        ('"Term"\t"Translation"\n"Hund"\t"dog"', [("Hund", "dog")]),
        ('"Hund"\tdog\n"Haus, das"\t"house, the"', [("Hund", "dog"), ("Haus, das", "house, the")]),
        ('"""Nein"""\t"""No"""\n5" Rohr\t5" pipe', [('"Nein"', '"No"'), ('5" Rohr', '5" pipe')]),
        ("Quelle\tsource\nZiel\ttarget", [("Quelle", "source"), ("Ziel", "target")]),
        ("Hund\tdog\nsource\ttarget\nde\ten", [("Hund", "dog"), ("source", "target"), ("de", "en")]),
        ("Deutsch\tGerman\nfr\tes", [("Deutsch", "German"), ("fr", "es")]),
        ("source\ttarget\nterm\ttranslation", [("term", "translation")]),
        ("source\ttarget", []),
    ],
)
def test_a_first_row_of_column_names_is_no_term_and_marks_of_a_spreadsheet_are_left_out(
    tmp_path: Path, rows: str, terms: list[tuple[str, str]]
) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(rows, "utf-8")
    assert [term[:2] for term in Glossary.read(path, ("de", "en")).terms] == terms


def test_terms_may_translate_each_other() -> None:
    glossary = make_glossary({"a": "b", "b": "a"})
    assert [place.term.target for place in glossary.find("a b")] == ["b", "a"]


def test_further_terms_replace_terms_and_leave_the_glossary_as_it_was() -> None:
    glossary = make_glossary({"Hund": "dog", "Katze": "cat"})
    extended = glossary.extended([Term("hund", "hound", ""), Term("Hund im Haus", "house dog", "")])
    text = "Hund Katze Hund im Haus"
    assert [place.term.target for place in extended.find(text)] == ["hound", "cat", "house dog"]
    assert [place.term.target for place in glossary.find(text)] == ["dog", "cat", "dog"]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("dog", "dogs", True), ("spielen", "spielt", True), ("woman", "women", True), ("TV", "TVs", True),
        ("Zug", "Zuges", True), ("서울", "서울에서", True), ("서울", "서울시", False),
        ("cat", "car", False), ("a", "as", False), ("house", "boat", False),
        ("東", "東", True), ("東", "京", False),
    ],
)  # fmt: skip
def test_forms_of_a_word_share_its_beginning(first: str, second: str, same: bool) -> None:
    assert same_stem(first, second) is same_stem(second, first) is same


@pytest.mark.parametrize(
    ("text", "translation", "held"),
    [
        ("Two Big dogs.", "big dog", True), ("Two dogs, big.", "big dog", False), ("it is", "IT", False),
        ("its", "IT", False), ("Zyxans", "Zyxan", True), ("zyxans", "Zyxan", False), ("", "dog", False),
        ("我去东京了", "东京", True), ("东西京", "东京", False),
    ],
)  # fmt: skip
def test_a_text_holds_a_translation_in_other_forms(text: str, translation: str, held: bool) -> None:
    assert holds_form(text, translation) is held


def test_a_term_of_turkish_is_found_in_its_own_capitals() -> None:
    glossary = make_glossary({"ısı": "heat", "iğne": "needle"}).in_language("tr")
    assert [place.term.target for place in glossary.find("ISI İĞNE Isı İğne isi IĞNE")] == ["heat", "needle"] * 2
    assert glossary.extended([Term("ılık su", "warm water", "x")]).find("ILIK SU")
    extended = make_glossary({"ısı": "heat", "iğne": "needle"}).extended([Term("ısı", "warmth", "x")])
    assert [place.term.target for place in extended.in_language("tr").find("ISI İĞNE")] == ["warmth", "needle"]
    assert holds_form("ISI", "ısı", "tr")
    assert not holds_form("ISI", "isi", "tr")


@pytest.mark.parametrize(
    ("text", "phrase", "held"),
    [
        ("a town hall.", "town hall", True), ("The town halled", "town hall", False),
        ("town hall's", "town hall", True), ("powder snowshine, powder snow", "powder snow", True),
        ("powder snowshine", "powder snow", False),
        ("the bigtown hall", "town hall", False), ("(town hall)", "town hall", True), ("snow-white", "snow", True),
        ("pi is 3.14159", "3.14", False), ("U.S.A", "U.S.", True), ("cafe\u0301s", "cafe", False),
        ("मकानों", "मकान", False), ("我去东京了", "东京", True), ("서울시청에서", "시청", True), ("", "snow", False),
    ],
)  # fmt: skip
def test_a_phrase_is_held_between_the_boundaries_of_words_where_a_script_has_them(
    text: str, phrase: str, held: bool
) -> None:
    assert holds_phrase(text, phrase) is held
