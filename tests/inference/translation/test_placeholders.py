"""Literals inside of a sentence are placeholders for the model, and come back where these are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from tests.tasks.documents import documents

from manyheads.config.schema import Config
from manyheads.inference.translation.glossary import Glossary
from manyheads.inference.translation.literals import (
    Sentence,
    knows_placeholders,
    put_placeholders,
    sentences_with_literals,
)
from manyheads.inference.translation.parts import Line
from manyheads.inference.translation.translator import DEFAULTS, Translator
from manyheads.search.interface import Engine, Hypothesis, make_hypothesis
from manyheads.search.options import SearchOptions
from manyheads.text.characters import ByteTokenizer
from manyheads.text.reserved import NONCHARACTERS, PLACEHOLDERS
from manyheads.text.tokenizer import EOS, TokenizerPair


class BytesAndPlaceholders(ByteTokenizer):
    """A tokenizer of bytes that has placeholders."""

    reserved: Mapping[str, int] = MappingProxyType(dict(zip(PLACEHOLDERS, range(260, 268), strict=True)))

    @property
    def size(self) -> int:
        return 260 + len(PLACEHOLDERS)


TOKENIZER = BytesAndPlaceholders(lowercase=False)


def with_placeholders(text: str) -> str:
    return re.sub(r"\[(\d)\]", lambda number: NONCHARACTERS[f"<keep-{number[1]}>"], text)


def ids_of(text: str) -> list[int]:
    """Return the tokens of a text in which [1] is the first placeholder."""
    return TOKENIZER.encode_marked([with_placeholders(text)])[0]


class ChangingEngine(Engine):
    """An engine whose outputs are its sources after a change."""

    def __init__(self, *changes: Callable[[list[int]], list[int]]) -> None:
        self.changes = changes

    def search(self, rows: Sequence[Sequence[int]], options: SearchOptions, *unused: Any) -> list[list[Hypothesis]]:
        changes = self.changes[: options.n_best]
        return [[self.output(change(list(row))) for change in changes] for row in rows]

    def output(self, ids: list[int]) -> Hypothesis:
        made = make_hypothesis([*ids, EOS], [-0.1] * (len(ids) + 1), ended=True, length_penalty=1.0)
        return replace(made, attention=tuple(map(tuple, np.eye(len(ids) + 1).tolist())))

    def stream(self, row: Sequence[int], *unused: Any) -> Iterator[int]:
        yield from (*row, EOS)


def translator(*changes: Callable[[list[int]], list[int]], **search: bool) -> Translator:
    config = Config.model_validate(
        {
            "data": {"source": "de", "target": "en", "max_length": 200}, "tokenizer": {"kind": "bytes"},
            "model": {"max_positions": 400}, "search": {"copy_literals": True} | search,
        }
    )  # fmt: skip
    return Translator(config, TokenizerPair(TOKENIZER, TOKENIZER, joint=True), ChangingEngine(*changes))


def lines_with_placeholders(made: Translator, texts: list[str], options: SearchOptions = DEFAULTS) -> list[Line]:
    """Return lines with placeholders for their literals."""
    splitter = made.splitter(options)
    return [put_placeholders(line, splitter) for line in splitter.lines(texts)]


def is_placeholder(token: int) -> bool:
    return token >= 260


def without_placeholders(ids: list[int]) -> list[int]:
    return [token for token in ids if not is_placeholder(token)]


def with_placeholders_twice(ids: list[int]) -> list[int]:
    return [*ids, *filter(is_placeholder, ids)]


def with_placeholders_reversed(ids: list[int]) -> list[int]:
    last = [token for token in ids if is_placeholder(token)]
    return [last.pop() if is_placeholder(token) else token for token in ids]


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("Sie haben %d neue Nachrichten.", ["Sie haben [1] neue Nachrichten."]),
        ("- Hallo <b>{name}</b>!", ["Hallo [1]!"]),
        ("Das <b>alte {x}</b> da", ["Das [1]alte [2] da"]),
        ("{a} und {b}\tnur {c}", ["[1] und [2]", "nur [1]"]),
        ("{a}, {b} und x", ["[1] und x"]),
        ("Frag www.x.org.", ["Frag [1]."]),
        ("Ein Hund.", []),
        ("{name}", []),
        ("<b>5</b>", []),
        ("{n, plural, one {# Datei} other {# Dateien}}", []),
        ("Nutze `a | b` heute", []),
    ],
)
def test_a_sentence_has_placeholders_for_its_literals(line: str, sentences: list[str]) -> None:
    found = [sentence.encode(TOKENIZER) for sentence in sentences_with_literals(line)]
    assert found == [*map(ids_of, sentences)]


def test_there_are_no_placeholders_for_more_literals_than_there_are() -> None:
    for count in (len(PLACEHOLDERS), len(PLACEHOLDERS) + 1):
        (sentence,) = sentences_with_literals("{a} und " * count + "Ende")
        assert (sentence.encode(TOKENIZER) is None) == (count > len(PLACEHOLDERS))


@pytest.mark.parametrize(
    ("source", "output", "text"),
    [
        ("Sieh {a} an.", "Look at [1].", "Look at {a}."),
        ("Sieh {a}.", "[1] is seen", "{a} is seen"),
        ("Sieh „{a}“ an.", 'See "[1]".', 'See "{a}".'),
        ("{a} ist da (oder {b}).", "There is [1] ([2]).", "There is {a} ({b})."),
        ("Das <b>Haus</b>.", "The [1] house [2] here.", "The <b>house</b> here."),
        ("Das <b>Haus</b> da", "[1] House [2], there", "<b>House</b>, there"),
        ("{이름}님 안녕", "[1] hello", "{이름} hello"),
        ("당신의 <b>집</b>이", "your [1]house[2] is", "your <b>house</b>is"),
        ("你好{a}你好", "hello [1] hello", "hello {a} hello"),
        ("{a} oder {b}", "[2] or [1]", "{b} or {a}"),
        ("{a} oder {b}", "[2][1]", "{b} {a}"),
        ("Geh zu {a}-Stadt", "Go to [1] -city", "Go to {a}-city"),
        ("Hallo {a}", "", ""),
    ],
)
def test_literals_come_back_with_the_blanks_of_their_source(source: str, output: str, text: str) -> None:
    (sentence,) = sentences_with_literals(source)
    assert sentence.restore(TOKENIZER, ids_of(output)) == text


@pytest.mark.parametrize(
    ("source", "output", "complete"),
    [
        ("{a} und {b}", "[1] [2]", True),
        ("{a} und {b}", "[2] [1]", True),
        ("{a} und {b}", "[1]", False),
        ("{a} und {b}", "[1] [2] [2]", False),
        ("{a} und {b}", "[1] [3]", False),
        ("<b>{a} und</b> x", "[1] [2]", True),
        ("<b>{a} und</b> x", "[2] [1]", False),
        ("{b}rot{/b} und", "[2] [1]", False),
        ("{\\i1}rot{\\i0} und", "[2] [1]", False),
        ("Ein \\emph{rot} und", "[2] [1]", False),
        ("Ein {1>rot<1} und", "[2] [1]", False),
        ("{1} und {0}", "[2] [1]", True),
    ],
)
def test_an_output_needs_each_placeholder_once_and_tags_in_order(source: str, output: str, complete: bool) -> None:
    (sentence,) = sentences_with_literals(source)
    assert sentence.is_complete(TOKENIZER, ids_of(output)) is complete


def test_a_model_that_changes_nothing_gives_documents_back_with_their_sentences_whole() -> None:
    typed = f"Ein {NONCHARACTERS['<keep-1>']} und {{a}} {NONCHARACTERS['<term>']} hier"
    texts = [*documents(), typed, "Sie haben %d neue Nachrichten."]
    made = translator(list)
    lines = lines_with_placeholders(made, texts)
    assert sum(bool(line.placeholders) for line in lines) > 50
    found = made.translate(texts)
    assert [translation.translation for translation in found] == texts
    assert found[-1].sentences == 1
    assert ["".join(made.stream(text)) for text in texts[::-5]] == texts[::-5]


@pytest.mark.parametrize(
    ("changes", "translation", "parts"),
    [
        ([list], "Das ist {a} und {b} hier", 1),
        ([with_placeholders_reversed], "Das ist {b} und {a} hier", 1),
        ([without_placeholders], "Das ist {a} und {b} hier", 3),
        ([with_placeholders_twice], "Das ist {a} und {b} hier", 3),
        ([without_placeholders, with_placeholders_reversed, list], "Das ist {b} und {a} hier", 1),
    ],
)
def test_outputs_with_all_placeholders_are_looked_for_in_a_wide_beam_before_a_line_is_cut(
    changes: list[Callable[[list[int]], list[int]]], translation: str, parts: int
) -> None:
    whole, plain = translator(*changes).translate(["Das ist {a} und {b} hier", "Ein Hund"], n_best=1)
    assert len(whole.hypotheses) == 1
    assert (whole.translation, whole.sentences) == (translation, parts)
    assert (plain.translation, plain.sentences) == ("Ein Hund", 1)


def test_a_line_is_cut_at_its_literals_where_there_is_a_glossary() -> None:
    """Its terms are looked for in sentences as they were written."""
    made, line = translator(list), "Das ist {a} und {b} hier"
    assert made.translate([line])[0].sentences == 1
    assert replace(made, glossary=Glossary(())).translate([line])[0].sentences == 3


@pytest.mark.parametrize(
    ("text", "options", "search"),
    [
        ("EIN {a} DA", SearchOptions(), {"lower_capitals": True}),
        ("Ein {a} " + "da " * 80, SearchOptions(), {}),
    ],
)
def test_other_lines_are_cut_at_their_literals(text: str, options: SearchOptions, search: dict[str, bool]) -> None:
    made = translator(list, **search)
    lines = lines_with_placeholders(made, [text], options)
    assert not lines[0].placeholders
    assert len(lines[0].parts) >= 2


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("Ein {a} da", "0-0 1-1 2-2"),
        ("- Ein <b>altes Haus</b> da", "0-0 1-1 2-2 3-3 4-4"),
        ('Ein <a href="x">Haus</a> da', "0-0 2-2 3-3"),
    ],
)
def test_words_are_aligned_with_literals_in_their_place(text: str, links: str) -> None:
    (found,) = translator(list).translate([text], options=SearchOptions(alignment=True))
    assert (found.translation, found.sentences, found.alignment) == (text, 1, links)


@pytest.mark.parametrize(
    ("text", "parts", "kept"),
    [
        ("Ein {a} da. Hier ist {b}.  Ende.", ["Ein {a} da.", "Hier ist {b}.", "Ende."], {0: ["{a}"], 1: ["{b}"]}),
        ("Da. Ein `a. B` da.", ["Da.", "Ein `a. B` da."], {1: ["`a. B`"]}),
        ("Ein {a} da", ["Ein {a} da"], {0: ["{a}"]}),
    ],
)
def test_sentences_that_are_translated_apart_have_their_own_literals(
    text: str, parts: list[str], kept: dict[int, list[str]]
) -> None:
    made = translator(list)
    (line,) = lines_with_placeholders(made, [text], SearchOptions(split="sentences"))
    assert [line.part_text(part) for part in range(len(line.parts))] == parts
    own = {part: [found.text[slice(*span)] for span in found.literals] for part, found in line.placeholders.items()}
    assert own == kept
    (result,) = made.translate([text], options=SearchOptions(split="sentences"))
    assert result.translation == text


def test_a_vocabulary_may_have_no_placeholders() -> None:
    plain = ByteTokenizer(lowercase=False)
    assert knows_placeholders(TokenizerPair(TOKENIZER, TOKENIZER, joint=True))
    assert not knows_placeholders(TokenizerPair(TOKENIZER, plain, joint=False))
    (found,) = translator(without_placeholders, copy_literals=False).translate(["Ein {a} da"])
    assert (found.translation, found.sentences) == ("Ein {a} da", 1)


def test_a_sentence_is_a_part_of_its_line() -> None:
    (sentence,) = sentences_with_literals("* Hallo {name} da")
    assert sentence == Sentence(2, "Hallo {name} da", [(6, 12)])
