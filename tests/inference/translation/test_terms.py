"""Terms of a glossary are hints where the model knows them, and required of the search else where they occur."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.inference.translation.test_translator import MAX_POSITIONS, make_translator

from manyheads.config.schema import Config
from manyheads.errors import UsageError
from manyheads.inference.translation.confidence import ConfidenceModel
from manyheads.inference.translation.glossary import Glossary, Term, ends_open, goes_on, holds_phrase
from manyheads.inference.translation.parts import Line
from manyheads.inference.translation.terms import _holds, _holds_form, force_phrases, word_tokens
from manyheads.inference.translation.translator import Translator
from manyheads.search.interface import Cancelled, Hypothesis, make_hypothesis, never_cancelled
from manyheads.search.options import UNCONSTRAINED, Constraints, Sampling, SearchOptions
from manyheads.text.reserved import TERM_SYMBOLS
from manyheads.text.tokenizer import EOS, TokenizerPair
from manyheads.text.training import train_tokenizers

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
    assert not any(translation.warnings.count("missing-phrase") for translation in (first, *others))
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


def test_a_term_is_found_in_a_source_with_typographic_marks() -> None:
    translator = make_translator(letters=LETTERS, end_bias=4.0)
    source, target = translator.tokenizers.source, translator.tokenizers.target
    tokenizers = TokenizerPair(source.for_side("source"), target.for_side("target"), joint=True)
    translator = replace(translator, tokenizers=tokenizers)
    texts = ["fg abc de.", "fg a\u00adb\u200bc de.", "fg ａｂｃ de."]
    outputs = translator.with_glossary(make_glossary(abc="mlml")).translate(texts)
    assert {output.translation for output in outputs} == {outputs[0].translation}
    assert "mlml" in outputs[0].translation


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
    translator = plain.with_glossary(make_glossary(abc=expected.translation, de="mlk"))
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


class ListedEngine:
    """An engine that gives listed outputs by their source as text, and required phrases with "forced"."""

    def __init__(self, translator: Translator, outputs: dict[str, str]) -> None:
        self.tokenizer, self.outputs, self.longest = translator.tokenizers.source, outputs, 99
        self.searched: list[str] = []
        self.refuses = False
        self.strain = 0.0  # nats a token that required phrases cost

    def search(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: Sequence[Constraints] = (),
        cancelled: Cancelled = never_cancelled,
    ) -> list[list[Hypothesis]]:
        """Return one output a row."""
        found = []
        for row, constraint in zip(rows, constraints, strict=True):
            shown = "".join(self.tokenizer.pieces(row)).replace("▁", " ").strip()
            text = re.sub(r"\s*(</?term>)\s*", r"\1", shown)
            self.searched.append(text)
            required = [token for ids in constraint.required for token in ids]
            if required and self.refuses:
                raise UsageError("no required words")
            tokens = [
                *self.tokenizer.encode(["forced" if required else self.outputs.get(text, "a cat")])[0],
                *required,
                EOS,
            ]
            scores = [-1.0 - self.strain * bool(required)] * len(tokens)
            output = make_hypothesis(tokens, scores, ended=True, length_penalty=1.0)
            found.append([replace(output, attention=((1.0,) * (len(row) + 1),) * len(tokens))])
        return found

    def stream(
        self, row: Sequence[int], options: SearchOptions, constraints: Constraints = UNCONSTRAINED
    ) -> Iterator[int]:
        """Yield nothing."""
        return iter(())


def hinted_translator(outputs: dict[str, str], **search: Any) -> tuple[Translator, ListedEngine]:
    config = Config.model_validate(
        {"data": {"source": "de", "target": "en"}, "tokenizer": {"vocab_size": 300, "reserved": TERM_SYMBOLS},
         "search": search},
    )  # fmt: skip
    texts = ["der Hund bellt, die Katze auch.", "forced dogs bark, the CATS do."]
    plain = Translator(config, train_tokenizers(config.tokenizer, texts, texts, "de", "en"), _NOTHING)
    engine = ListedEngine(plain, outputs)
    return replace(plain, engine=engine).with_glossary(
        make_glossary(Hund="dog", Katze="CAT", Haus="dog house")
    ), engine


_NOTHING: Any = ListedEngine.__new__(ListedEngine)


def test_a_hint_is_given_where_an_output_has_no_form_of_a_term() -> None:
    source = "die<term>dog</term>bellen."
    outputs = {"die Hunde bellen.": "They bark.", source: "Dogs bark.", "Hund": "Dogs.", "bellen": "bark"}
    translator, engine = hinted_translator(outputs)
    found = translator.translate(["die Hunde bellen.", "Hund", "bellen"])
    assert engine.searched == ["die Hunde bellen.", "Hund", "bellen", source]
    assert [translation.translation for translation in found] == ["Dogs bark.", "Dogs.", "bark"]
    assert not any(translation.warnings for translation in found)


def test_an_output_that_lacks_a_term_after_a_hint_must_have_it() -> None:
    hints = {"ein<term>CAT</term>": "a cat", "<term>dog house</term>": "a house dog"}
    translator, engine = hinted_translator({"ein Katze": "a cat", "Haus": "a house", **hints})
    found = translator.translate(["ein Katze", "Haus"])
    assert engine.searched == ["ein Katze", "Haus", *hints, *hints]
    assert [translation.translation for translation in found] == ["forced CAT", "forced dog house"]
    assert not any(translation.warnings for translation in found)


def test_marks_in_a_text_are_no_hints_and_tags_are_placed_without_hints() -> None:
    hinted = "a<term>dog</term>"
    translator, engine = hinted_translator({hinted: "dog", "a Hund": "a cat", "Hund": "cat"})
    translator.translate(["\ufdd0a\ufdd1 Hund"])
    assert engine.searched[1:] == [hinted]
    found = translator.translate(["Hund"], options=SearchOptions(alignment=True))
    assert engine.searched[2:] == ["Hund", "Hund"]
    assert found[0].translation == "forced dog"


def test_without_constrained_search_an_output_without_a_term_stays_with_a_warning() -> None:
    translator, engine = hinted_translator({"Hund": "cats", "<term>dog</term>": "the cats"})
    engine.refuses = True
    (found,) = translator.translate(["Hund"])
    assert (found.translation, found.warnings) == ("the cats", ["missing-phrase"])
    plain = replace(translator, engine=engine)
    plain.tokenizers.source.reserved = {}
    engine.outputs = {"Hund": "the cats"}
    with pytest.raises(UsageError, match="no required words"):
        plain.translate(["Hund"])


@pytest.mark.parametrize(
    ("strain", "glossary", "translation", "warnings", "level"),
    [
        (0.9, True, "forced dog", [], "high"),
        (1.1, True, "the cats", ["missing-phrase", "forced-term"], "low"),
        (0.9, False, "forced dog", [], "high"),
        (1.1, False, "forced dog", ["forced-term"], "low"),
    ],
)
def test_a_forced_output_that_is_far_less_likely_warns_and_gives_way_to_the_free_one_of_a_glossary(
    strain: float, glossary: bool, translation: str, warnings: list[str], level: str
) -> None:
    translator, engine = hinted_translator({"Hund": "the cats"})
    translator.tokenizers.source.reserved = {}
    confidence = ConfidenceModel(0.9, (0.0, 0.0, 0.0, 0.0), 0.0, (0.3, 0.5))
    own = translator.glossary if glossary else None
    translator = replace(translator, glossary=own, confidence=confidence)
    engine.strain = strain
    (found,) = translator.translate(["Hund"], required=[[]] if glossary else [["dog"]])
    assert (found.translation, found.warnings, found.confidence_level) == (translation, warnings, level)


def test_a_phrase_breaks_no_word_of_an_output_and_follows_no_sentence() -> None:
    translator = make_translator(letters=LETTERS, end_bias=1.0)
    sources = [f"ab{letter} fg" for letter in "abcdefghijkl"]
    free = translator.translate(sources)
    forced = translator.translate(sources, required=[["mlk", "kd"]] * len(sources))
    for before, after in zip(free, forced, strict=True):
        assert holds_phrase(after.translation, "mlk")
        assert holds_phrase(after.translation, "kd")
        sentences = max(1, re.sub(r"[^a-z]*$", "", before.translation, flags=re.IGNORECASE).count(".") + 1)
        assert not re.search("[a-z]", "".join(after.translation.split(".")[sentences:]), re.IGNORECASE)


@pytest.mark.parametrize(
    ("free", "sentences"),
    [("dogs bark.", 1), ("dogs bark", 1), ("dogs. bark. the", 3), ('dogs "bark."', 1), ("", 1)],
)
def test_a_forced_output_has_as_many_sentences_as_the_free_one(free: str, sentences: int) -> None:
    tokenizer = hinted_translator({})[0].tokenizers.target
    tokens = tokenizer.encode([free])[0]
    output = make_hypothesis(tokens, [-1.0] * len(tokens), ended=False, length_penalty=1.0)
    assert force_phrases(tokenizer, output, UNCONSTRAINED, ()).sentences == sentences


@pytest.mark.parametrize("kind", ["bpe", "unigram", "characters", "bytes"])
def test_the_words_of_two_tokens_are_those_of_their_text(kind: str) -> None:
    config = Config.model_validate(
        {"data": {"source": "de", "target": "en"}, "tokenizer": {"kind": kind, "vocab_size": 284}}
    )
    texts = ["the town halls, the town halled. powder snow 3.5 shine", "snowshine the the hall hal"] * 3
    tokenizer = train_tokenizers(config.tokenizer, texts, texts, "de", "en").target
    words = word_tokens(tokenizer)
    assert words.goes_on.any()
    assert words.ends_sentence.any()
    for first in range(tokenizer.size):
        text = tokenizer.decode([first])
        for second in range(first % 7, tokenizer.size, 7):
            joined = ends_open(text) and goes_on(tokenizer.decode([first, second])[len(text) :])
            assert joined == (words.ends_open[first] and words.goes_on[second]), (first, second)


def test_capitals_of_a_line_are_those_of_its_language() -> None:
    line = Line("IĞDIR GÜZEL.", [(0, 12)], [[5]], capitals=(True,), target="az")
    assert _holds(line, "iyi", "İYİ")
    assert _holds_form(line, "iğne", "İĞNE")
    assert not _holds(replace(line, capitals=()), "iyi", "İYİ")
