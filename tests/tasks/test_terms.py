"""Terms of a glossary are required of the search where they occur, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.tasks.translation.test_translator import MAX_POSITIONS, make_translator

from manyheads.data.glossary import Glossary, Term
from manyheads.errors import UsageError
from manyheads.search.options import Sampling, SearchOptions

LETTERS = "Abcdefghijklam .,"


def make_glossary(**pairs: str) -> Glossary:
    return Glossary(Term(*pair, f"line {number}") for number, pair in enumerate(pairs.items(), start=1))


@pytest.mark.parametrize("split", ["auto", "sentences"])
def test_a_translation_is_required_where_its_term_occurs_and_nowhere_else(split: Any) -> None:
    plain = make_translator(letters=LETTERS, end_bias=4.0)
    translator = plain.with_glossary(make_glossary(abc="mlmlm", de="kki"))
    texts = ["abc. de. fgh.", "fgh abcd.", "a de", ""]
    options = SearchOptions(split=split)
    first, *others = translator.translate(texts, options=options)
    assert "mlmlm" in first.translation
    assert "kki" in first.translation
    assert "kki" in others[1].translation
    assert not any(one.warnings.count("missing-phrase") for one in (first, *others))
    expected = plain.translate(texts, options=options)
    for index in (1, 3):
        assert [first, *others][index].hypotheses == expected[index].hypotheses


def test_the_glossary_is_obeyed_in_each_sentence_and_beside_required_phrases() -> None:
    translator = make_translator(letters=LETTERS, end_bias=4.0).with_glossary(make_glossary(abc="mlml"))
    (found,) = translator.translate(
        ["Abc fg. Abc de."], required=[["kkj"]], options=SearchOptions(split="sentences")
    )
    assert found.sentences == 2
    assert found.translation.count("mlml") == 2
    assert "kkj" in found.translation


def test_many_terms_of_a_line_cost_a_bounded_number_of_beams() -> None:
    glossary = Glossary(Term(first + second, "lk" * 4, "") for first in "abcdef" for second in "abcdef")
    words = [term.source for term in glossary.terms]
    glossary = Glossary(Term(word, f"{word}{'lk' * 4}", "") for word in words)
    plain = make_translator(letters=LETTERS, max_positions=500)
    (found,) = plain.with_glossary(glossary).translate([" ".join(words)], beam_size=1)
    assert "missing-phrase" in found.warnings
    assert sum(f"{word}lklklklk" in found.translation for word in words) == 6


@pytest.mark.parametrize(
    ("pairs", "message"),
    [({"a": "b", "c": "Ж"}, 'line 2: "Ж" cannot come out'),
     ({"a": "b" * MAX_POSITIONS}, f"line 1: .* has {MAX_POSITIONS} tokens, .* is {MAX_POSITIONS - 1}")],
)  # fmt: skip
def test_a_translation_that_cannot_come_out_is_refused_with_its_line(pairs: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_translator().with_glossary(make_glossary(**pairs))


def test_a_line_whose_output_has_the_translation_is_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = make_translator(letters=LETTERS, end_bias=1.0)
    (expected,) = plain.translate(["abc"])
    translator = plain.with_glossary(make_glossary(abc=expected.translation[:2], de="mlk"))
    searched: list[int] = []
    search = translator.engine.search

    def count(rows: Any, *arguments: Any) -> Any:
        searched.append(len(rows))
        return search(rows, *arguments)

    monkeypatch.setattr(translator.engine, "search", count)
    first, second = translator.translate(["abc", "de"])
    assert searched == [2, 1]
    assert (first.translation, first.hypotheses[0].tokens) == (expected.translation, expected.hypotheses[0].tokens)
    assert "mlk" in second.translation


def test_a_glossary_is_refused_for_sampling_and_for_streams() -> None:
    translator = make_translator().with_glossary(make_glossary(a="b"))
    with pytest.raises(UsageError, match="not by sampling"):
        translator.translate(["c"], options=SearchOptions(sampling=Sampling()))
    with pytest.raises(UsageError, match="not streamed"):
        next(translator.stream("c"))
