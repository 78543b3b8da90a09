"""Lines are split without loss of text or blanks, and every segment is a substring of the line."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.translation.test_translator import (
    LETTERS,
    MAX_POSITIONS,
    assert_same,
    make_translator,
    watch_sources,
)
from tests.tasks.documents import documents, word_translator

from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.inference.engines import engine_of
from manyheads.inference.native.build import library
from manyheads.inference.native.model import NativeModel
from manyheads.inference.translation.parts import Line, Splitter, _blank_between
from manyheads.inference.translation.translator import SearchOptions, Translator
from manyheads.text.characters import ByteTokenizer
from manyheads.text.sentences import _LINE_ENDS

SENTENCES = SearchOptions(split="sentences")
KNOWN = LETTERS + ". ,ABCDEFGHIJKLM"
TEXTS = st.text(alphabet="ab .,A!\n\t。", max_size=60)


def translator(**options) -> Translator:
    return make_translator(end_bias=4.0, letters=KNOWN, **options)


# What people's texts are made of, and its parts without a letter, which are copied.
LETTERLESS = [
    "***", "| --- | :-: |", "```", "----", "123", "12:30", "3,50 €", "...", "!?", "\u200b", "(1)", "$ % &", "٣٤",
    "\U0001f600", "_" * 40, "\u3164\uffa0",
]  # fmt: skip
SPACE = [" ", "   ", "\t", "\n", "\r\n", "\r", "\n\n", "\v", "\f", "\x85", "\u2028", "\u00a0", "\u3000"]
WORDS = [
    "Abc.",
    "def, ghi; jkl",
    "ABC DEF!",
    "Ab。Cd。",
    "「はい」と",
    "a" * 50,
    "{name}",
    "<b>x</b>",
    "http://x.org",
    "Nr. 3",
]
LAYOUTS = st.lists(st.sampled_from([*LETTERLESS, *SPACE, *SPACE, *WORDS]), max_size=12).map("".join)


def split_line(text: str, split, trained_length: int = 20, **options: bool) -> Line:
    splitter = Splitter(ByteTokenizer(lowercase=False), "en", split, trained_length, 1000, **options)
    (line,) = splitter.lines([text])
    return line


@settings(max_examples=150)
@given(st.one_of(TEXTS, LAYOUTS), st.sampled_from(["auto", "sentences", "none"]), st.integers(1, 30), st.booleans())
def test_a_model_that_changes_nothing_gives_the_text(text, split, trained_length, settings) -> None:
    line = split_line(text, split, trained_length, copy_literals=settings, lower_capitals=settings)
    parts = [text[start:end] for start, end in line.spans]
    assert line.join(parts) == text
    assert "".join(line.stream(map(list, parts))) == text
    assert all(any(map(str.isalpha, part)) and part == part.strip() for part in parts)
    if split != "none":
        assert all(
            len(ids) <= trained_length or len(part) == 1 for part, ids in zip(parts, line.parts, strict=True)
        )


@settings(max_examples=100)
@given(LAYOUTS, st.sampled_from(["auto", "sentences", "none"]), st.booleans())
def test_each_line_of_a_text_is_split_as_if_it_were_alone(text, split, settings) -> None:
    options = {"copy_literals": settings, "lower_capitals": settings}
    text = text.replace("```", "``")  # blocks of code have several lines
    parts = [part for line in _LINE_ENDS.split(text) for part in split_line(line, split, **options).parts]
    assert split_line(text, split, **options).parts == parts


@pytest.mark.parametrize("split", ["auto", "sentences", "none"])
def test_what_comes_out_of_300_documents_has_their_structure(split) -> None:
    """The model drops everything but words."""
    made, texts = word_translator(), documents()
    found = made.translate(texts, options=SearchOptions(split=split, match_source=True))
    assert [translation.translation for translation in found] == texts
    some = texts[::5]
    unmatched = made.translate(some, options=SearchOptions(split=split))
    streamed = ["".join(made.stream(text, options=SearchOptions(split=split))) for text in some]
    assert streamed == [translation.translation for translation in unmatched]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("- Ein Hund\n  - „Ja“, sagt er.", ["Ein Hund", "„Ja“, sagt er."]),
        (
            "1. Ein Hund\n3. Mai 2020\n1. mai\n2020. 5. 3. Katze",
            ["Ein Hund", "3. Mai 2020", "1. mai", "2020. 5. 3. Katze"],
        ),
        ("Name:\tTom\n„Ja“\t„Nein“", ["Name:", "Tom", "„Ja“", "„Nein“"]),
        ("| a | b |\nc || d\ne|f", ["a", "b", "c || d", "e|f"]),
        ("```\nx = y\n```\nEin Hund\n~~~ ab\n# c", ["Ein Hund", "~~~ ab", "c"]),
        ("#tag -x *a* #1\n# 8 Hunde\n## Hunde", ["#tag -x *a* #1", "# 8 Hunde", "Hunde"]),
        ("Ein  Hund - ja. > 3", ["Ein  Hund - ja. > 3"]),
    ],
)
def test_marks_of_the_layout_are_copied_without_a_setting(text: str, parts: list[str]) -> None:
    line = split_line(text, "auto", trained_length=100)
    assert [line.part_text(part) for part in range(len(line.parts))] == parts


@pytest.mark.parametrize("split", ["auto", "sentences", "none"])
def test_text_without_letters_is_copied_alone_and_between_others(split) -> None:
    made, options = translator(), SearchOptions(split=split)
    texts = [*LETTERLESS, *SPACE]
    between = [f"\tAbc.\n{text}\r\n  {text}\n\n Def " for text in texts]
    first, second, *found = (
        translation.translation
        for translation in made.translate(["Abc.", "Def", *texts, *between], options=options)
    )
    assert found == [*texts, *(f"\t{first}\n{text}\r\n  {text}\n\n {second} " for text in texts)]
    for text in texts:
        assert "".join(made.stream(text, options=options)) == text


def test_a_task_of_numbers_translates_them() -> None:
    """A tokenizer that was trained without a letter shows that text without letters has a translation."""
    made = make_translator(end_bias=-5.0, letters="0123456789 +.")
    assert not made.tokenizers.source.knows_letters
    *found, unseen = made.translate(["12+30", " 12.\n30 ", "\u200b\u3164"])
    assert [translation.sentences for translation in found] == [1, 2]
    assert all(translation.hypotheses[0].tokens for translation in found)
    assert unseen.translation == "\u200b\u3164"


def test_a_line_of_a_trained_length_is_not_split() -> None:
    text = "Abc. Def. Ghi."
    (whole,) = translator().translate([text])
    assert whole.sentences == 1
    (split,) = translator().translate([text], options=SENTENCES)
    assert split.sentences == 3


def test_the_translation_of_a_line_joins_those_of_its_sentences_with_its_blanks() -> None:
    made = translator()
    text = "  Abc.  Def abc!\n\n\tGhi.   "
    found, *parts = made.translate([text, "Abc.", "Def abc!", "Ghi."], n_best=3, options=SENTENCES)
    first, second, third = (part.translation for part in parts)
    assert found.translation == f"  {first}  {second}\n\n\t{third}   "
    assert found.sentences == 3
    best = found.hypotheses[0]
    assert best.tokens == [token for part in parts for token in part.hypotheses[0].tokens]
    assert best.log_probability == pytest.approx(sum(part.hypotheses[0].log_probability for part in parts))
    assert best.score == pytest.approx(best.log_probability / len(best.tokens))
    assert found.hypotheses[2].text == "  {}  {}\n\n\t{}   ".format(*(part.hypotheses[2].text for part in parts))


def test_a_line_longer_than_any_in_training_is_translated_sentence_by_sentence() -> None:
    made = translator(data={"max_length": 20})
    text = "Abcdefgh ab. Cdefgh ab. Mm."
    found, *parts = made.translate([text, "Abcdefgh ab.", "Cdefgh ab.", "Mm."])
    assert found.sentences == 3
    assert found.translation == " ".join(part.translation for part in parts)
    assert "sentence-cut" not in found.warnings


def test_a_sentence_that_is_too_long_is_split_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = watch_sources(monkeypatch)
    (found,) = translator(data={"max_length": 12}).translate(["abc abcdef, kk abcdefgh, " * 5])
    assert found.warnings[0] == "sentence-cut"
    assert found.sentences > 5
    assert not found.truncated, "nothing was left out"
    assert max(length for _, length in shapes) <= 13


def test_a_truncated_output_of_any_sentence_marks_the_line_as_truncated() -> None:
    made = make_translator(end_bias=-1e9, letters=KNOWN)
    (found,) = made.translate(["Ab. Cd."], options=SENTENCES)
    assert found.truncated
    assert found.sentences == 2


@pytest.mark.slow
def test_a_hundred_thousand_characters_in_one_line_are_translated_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Translate many sentences, and one long word, with a model of short outputs."""
    shapes = watch_sources(monkeypatch)
    made = make_translator(end_bias=50.0, letters=KNOWN, data={"max_length": 40}, search={"beam_size": 1})
    for text in ("Abc def, ghi jkl. " * 5_600, "a" * 100_000):
        start = time.process_time()
        (found,) = made.translate([text])
        assert found.sentences >= 2_500
        assert not found.truncated
        assert time.process_time() - start < 60
    assert max(rows * length for rows, length in shapes) <= 4_096
    assert max(length for _, length in shapes) <= MAX_POSITIONS


@pytest.mark.parametrize("text", ["Abc abc. Def.", "abc", "", "  ", "ab " * 40, "\nAb.\n", "Ab。Cd。"])
@pytest.mark.parametrize("split", ["auto", "sentences", "none"])
def test_a_stream_is_the_greedy_translation_in_pieces(text, split) -> None:
    made = translator(data={"max_length": 30})
    options = SearchOptions(split=split, no_repeat_ngram=3)
    (expected,) = made.translate([text], beam_size=1, options=options, prefixes=["ab"])
    pieces = list(made.stream(text, prefix="ab", options=options))
    assert "".join(pieces) == expected.translation
    assert all(pieces)
    assert len(pieces) > 1 or len(expected.translation.strip()) < 2


def test_a_stream_returns_whether_it_was_truncated() -> None:
    def truncated(made: Translator, text: str, split: str) -> bool:
        pieces = made.stream(text, options=SearchOptions(split=split))
        while True:
            try:
                next(pieces)
            except StopIteration as end:
                return end.value

    assert not truncated(translator(), "abc", "auto")
    assert truncated(make_translator(end_bias=-1e9), "abc", "auto")
    assert truncated(make_translator(end_bias=30.0), "a" * MAX_POSITIONS, "none")
    assert not truncated(make_translator(end_bias=30.0), "", "auto")


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_a_piece_is_yielded_before_the_next_token_is_computed(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_translator(end_bias=-5.0)
    made = replace(made, engine=engine_of(made.model, engine))
    steps: list[int] = []
    for owner, name in ((EncoderDecoderStepper, "step"), (NativeModel, "beam_steps")):
        step = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, step=step: steps.append(1) or step(*given))
    made.model.train()
    pieces = made.stream("abc")
    for count in range(1, 6):
        next(pieces)
        assert len(steps) == count
    assert made.model.training == (engine == "auto" and library() is not None)
    pieces.close()
    assert made.model.training, "the mode is restored when the stream is closed"


def test_a_prefix_applies_to_the_first_sentence_and_forbidden_phrases_to_all() -> None:
    made = translator()
    text = "Abc. Def. Ghi."
    (found,) = made.translate([text], options=SENTENCES, prefixes=["kk"], forbidden=[["a", "b"]], required=[["ml"]])
    first, *others = made.translate(
        ["Abc.", "Def.", "Ghi."], prefixes=["kk", "", ""], forbidden=[["a", "b"]] * 3, required=[["ml"], [], []]
    )
    assert found.translation == " ".join(translation.translation for translation in (first, *others))
    assert found.translation.startswith("kk")
    assert not set("ab") & set(found.hypotheses[0].tokens)
    assert "ml" in first.translation


def test_alignments_of_sentences_are_numbered_through_the_line() -> None:
    made = make_translator(end_bias=0.0, letters=KNOWN)
    options = SearchOptions(split="sentences", alignment=True)
    text = "Abc def. Ghi. Abc."
    found, *parts = made.translate([text, "Abc def.", "Ghi.", "Abc."], options=options)
    assert all(part.translation for part in parts)
    links = []
    source = target = 0
    for part in parts:
        links += [
            f"{int(i) + source}-{int(j) + target}" for i, j in (link.split("-") for link in part.alignment.split())
        ]
        source, target = source + len(part.source.split()), target + len(part.translation.split())
    assert found.alignment == " ".join(links)


@pytest.mark.parametrize(
    ("mark", "last", "first", "between"),
    [
        ("。", ".", "H", " "),
        ("a", "b", "c", ""),
        (".", "。", "你", ""),
        ("。", "", "H", ""),
        ("。", "다", "가", " "),
    ],
)
def test_sentences_without_a_blank_between_them_get_one_if_the_target_language_has_blanks(
    mark, last, first, between
) -> None:
    assert _blank_between(mark, last, first) == between


def test_a_sentence_has_the_same_translation_alone_and_in_a_line() -> None:
    made = translator()
    found = made.translate(["Abc. Abc.", "Abc."], options=SENTENCES)
    assert found[0].translation == " ".join([found[1].translation] * 2)
    (alone,) = translator().translate(["Abc."], options=SENTENCES)
    assert_same(found[1], alone)


COPYING = {"copy_literals": True, "lower_capitals": True}


def test_addresses_and_tags_are_copied_and_the_text_around_them_is_translated() -> None:
    made = translator(search=COPYING)
    options = SearchOptions(alignment=True)
    text = "Abc abc www.x.org/y <b>def</b>! 17 "
    found, first, second = made.translate([text, "Abc abc", "def"], options=options)
    assert found.translation == f"{first.translation} www.x.org/y <b>{second.translation}</b>! 17 "
    assert found.sentences == 2
    links = [tuple(map(int, link.split("-"))) for link in found.alignment.split()]
    words = found.translation.split()
    assert (2, words.index("www.x.org/y")) in links, "an address is linked to itself"
    assert (4, words.index("17")) in links, "a number at the end, too"
    assert all(source < 5 and target < len(words) for source, target in links)


@pytest.mark.parametrize("text", ["https://x.org/a?b=1", "17:45", "...", "😀"])
def test_a_line_without_anything_to_translate_is_copied(text: str) -> None:
    made = translator(search=COPYING)
    (found,) = made.translate([text], options=SearchOptions(alignment=True))
    assert (found.translation, found.alignment, found.truncated) == (text, "0-0", False)
    assert "".join(made.stream(text)) == text
    assert found.to_json()["hypotheses"][0]["text"] == text


def test_text_in_capitals_is_translated_like_other_text_and_returned_in_capitals() -> None:
    made = make_translator(end_bias=0.0, letters=KNOWN, search=COPYING)
    found, trained_length, mixed = made.translate(["ABC DEF. GHI!", "Abc def. Ghi!", "ABC Def"])
    assert found.translation == trained_length.translation.upper() != trained_length.translation
    assert mixed.translation == make_translator(end_bias=0.0, letters=KNOWN).translate(["ABC Def"])[0].translation
    (alone, plain) = made.translate(["ABC https://x.org DEF abc", "Abc"])
    assert alone.translation.startswith(f"{plain.translation.upper()} https://x.org ")


def test_capitals_are_read_and_written_in_their_language() -> None:
    tokenizer = ByteTokenizer(lowercase=False)
    splitter = Splitter(tokenizer, "tr", "sentences", 99, 99, lower_capitals=True, target="az")
    (line,) = splitter.lines(["IĞDIR GÜZEL. İYİ."])
    assert [tokenizer.decode(part) for part in line.parts] == ["Iğdır güzel.", "İyi."]
    assert line.join(["ılıq su", "iyi"]) == "ILIQ SU İYİ"


@pytest.mark.parametrize("text", ["Abc www.x.org def. Ghi", "ABC DEF", "  <b>abc</b>  ", "<i>", "", "  "])
@pytest.mark.parametrize("split", ["auto", "sentences", "none"])
def test_a_stream_copies_literals_and_keeps_capitals(text: str, split) -> None:
    made = translator(search=COPYING)
    options = SearchOptions(split=split)
    (expected,) = made.translate([text], beam_size=1, options=options)
    assert "".join(made.stream(text, options=options)) == expected.translation
