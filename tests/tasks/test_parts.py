"""Lines are split without loss of text or blanks, and every segment is a substring of the line."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tasks.test_translation import LETTERS, MAX_POSITIONS, assert_same, make_translator, watch_sources

from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.tasks.parts import Splitter, blank_between
from manyheads.tasks.translation import TranslateOptions, Translator
from manyheads.text.characters import ByteTokenizer

SENTENCES = TranslateOptions(split="sentences")
KNOWN = LETTERS + ". ,ABCDEFGHIJKLM"
TEXTS = st.text(alphabet="ab .,A!\n\t。", max_size=60)


def translator(**options) -> Translator:
    return make_translator(end_bias=4.0, letters=KNOWN, **options)


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(["auto", "sentences", "none"]), st.integers(1, 30))
def test_the_segments_and_the_blanks_between_them_join_to_the_line(text, split, trained_length) -> None:
    tokenizer = ByteTokenizer(lowercase=False)
    (ids,) = tokenizer.encode([text])
    line = Splitter(tokenizer, "en", split, trained_length=trained_length, longest=1000).line(text, ids)
    assert len(line.parts) == len(line.spans)
    if text.strip():
        joined = line.join([text[start:end] for start, end in line.spans])
        assert joined.replace(" ", "") == text.replace(" ", "")  # a blank may be added behind a full-width mark
    if split != "none":
        assert all(
            len(part) <= trained_length or end - start == 1
            for part, (start, end) in zip(line.parts, line.spans, strict=True)
        )
    if split == "none" or (split == "auto" and len(ids) <= trained_length):
        assert line.parts == [ids]


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
    first, second, third = (one.translation for one in parts)
    assert found.translation == f"  {first}  {second}\n\n\t{third}   "
    assert found.sentences == 3
    best = found.hypotheses[0]
    assert best.tokens == [token for one in parts for token in one.hypotheses[0].tokens]
    assert best.log_probability == pytest.approx(sum(one.hypotheses[0].log_probability for one in parts))
    assert best.score == pytest.approx(best.log_probability / len(best.tokens))
    assert found.hypotheses[2].text == "  {}  {}\n\n\t{}   ".format(*(one.hypotheses[2].text for one in parts))


def test_a_line_longer_than_any_in_training_is_translated_sentence_by_sentence() -> None:
    made = translator(data={"max_length": 20})
    text = "Abcdefgh ab. Cdefgh ab. Mm."
    found, *parts = made.translate([text, "Abcdefgh ab.", "Cdefgh ab.", "Mm."])
    assert found.sentences == 3
    assert found.translation == " ".join(one.translation for one in parts)
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
def test_a_million_characters_in_one_line_are_translated_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Translate many sentences, and one long word, with a model of short outputs."""
    shapes = watch_sources(monkeypatch)
    made = make_translator(end_bias=50.0, letters=KNOWN, data={"max_length": 40}, search={"beam_size": 1})
    for text in ("Abc def, ghi jkl. " * 56_000, "a" * 1_000_000):
        start = time.process_time()
        (found,) = made.translate([text])
        assert found.sentences >= 25_000
        assert not found.truncated
        assert time.process_time() - start < 120
    assert max(rows * length for rows, length in shapes) <= 4_096
    assert max(length for _, length in shapes) <= MAX_POSITIONS


@pytest.mark.parametrize("text", ["Abc abc. Def.", "abc", "", "  ", "ab " * 40, "\nAb.\n", "Ab。Cd。"])
@pytest.mark.parametrize("split", ["auto", "sentences", "none"])
def test_a_stream_is_the_greedy_translation_in_pieces(text, split) -> None:
    made = translator(data={"max_length": 30})
    options = TranslateOptions(split=split, no_repeat_ngram=3)
    (expected,) = made.translate([text], beam_size=1, options=options, prefixes=["ab"])
    pieces = list(made.stream(text, prefix="ab", options=options))
    assert "".join(pieces) == expected.translation
    assert all(pieces)
    assert len(pieces) > 1 or len(expected.translation) < 2


def test_a_stream_returns_whether_it_was_truncated() -> None:
    def truncated(made: Translator, text: str, split: str) -> bool:
        pieces = made.stream(text, options=TranslateOptions(split=split))  # type: ignore[arg-type]
        while True:
            try:
                next(pieces)
            except StopIteration as end:
                return end.value

    assert not truncated(translator(), "abc", "auto")
    assert truncated(make_translator(end_bias=-1e9), "abc", "auto")
    assert truncated(make_translator(end_bias=30.0), "a" * MAX_POSITIONS, "none")
    assert not truncated(make_translator(end_bias=30.0), "", "auto")


def test_a_piece_is_yielded_before_the_next_token_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_translator(end_bias=-5.0)
    steps: list[int] = []
    step = EncoderDecoderStepper.step
    monkeypatch.setattr(EncoderDecoderStepper, "step", lambda self, ids: steps.append(1) or step(self, ids))
    made.model.train()
    pieces = made.stream("abc")
    for count in range(1, 6):
        next(pieces)
        assert len(steps) == count
    assert not made.model.training
    pieces.close()
    assert made.model.training, "the mode is restored when the stream is closed"


def test_a_prefix_applies_to_the_first_sentence_and_forbidden_phrases_to_all() -> None:
    made = translator()
    text = "Abc. Def. Ghi."
    (found,) = made.translate([text], options=SENTENCES, prefixes=["kk"], forbidden=[["a", "b"]], required=[["ml"]])
    first, *others = made.translate(
        ["Abc.", "Def.", "Ghi."], prefixes=["kk", "", ""], forbidden=[["a", "b"]] * 3, required=[["ml"], [], []]
    )
    assert found.translation == " ".join(one.translation for one in (first, *others))
    assert found.translation.startswith("kk")
    assert not set("ab") & set(found.hypotheses[0].tokens)
    assert "ml" in first.translation


def test_alignments_of_sentences_are_numbered_through_the_line() -> None:
    made = make_translator(end_bias=0.0, letters=KNOWN)
    options = TranslateOptions(split="sentences", alignment=True)
    text = "Abc def. Ghi. Abc."
    found, *parts = made.translate([text, "Abc def.", "Ghi.", "Abc."], options=options)
    assert all(one.translation for one in parts)
    links = []
    source = target = 0
    for one in parts:
        links += [
            f"{int(i) + source}-{int(j) + target}" for i, j in (link.split("-") for link in one.alignment.split())
        ]
        source, target = source + len(one.source.split()), target + len(one.translation.split())
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
    assert blank_between(mark, last, first) == between


def test_a_sentence_has_the_same_translation_alone_and_in_a_line() -> None:
    made = translator()
    found = made.translate(["Abc. Abc.", "Abc."], options=SENTENCES)
    assert found[0].translation == " ".join([found[1].translation] * 2)
    (alone,) = translator().translate(["Abc."], options=SENTENCES)
    assert_same(found[1], alone)


COPYING = {"copy_literals": True, "lower_capitals": True}


def test_addresses_and_tags_are_copied_and_the_text_around_them_is_translated() -> None:
    made = translator(search=COPYING)
    options = TranslateOptions(alignment=True)
    text = "Abc abc www.x.org/y <b>def</b>! 17 "
    found, first, second = made.translate([text, "Abc abc", "def"], options=options)
    assert found.translation == f"{first.translation} www.x.org/y <b>{second.translation}</b>! 17 "
    assert found.sentences == 2
    assert found.alignment is not None
    links = [tuple(map(int, link.split("-"))) for link in found.alignment.split()]
    words = found.translation.split()
    assert (2, words.index("www.x.org/y")) in links, "an address is linked to itself"
    assert (4, words.index("17")) in links, "a number at the end, too"
    assert all(source < 5 and target < len(words) for source, target in links)


@pytest.mark.parametrize("text", ["https://x.org/a?b=1", "17:45", "...", "😀"])
def test_a_line_without_anything_to_translate_is_copied(text: str) -> None:
    made = translator(search=COPYING)
    (found,) = made.translate([text], options=TranslateOptions(alignment=True))
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


@pytest.mark.parametrize("text", ["Abc www.x.org def. Ghi", "ABC DEF", "  <b>abc</b>  ", "<i>", "", "  "])
@pytest.mark.parametrize("split", ["auto", "sentences", "none"])
def test_a_stream_copies_literals_and_keeps_capitals(text: str, split) -> None:
    made = translator(search=COPYING)
    options = TranslateOptions(split=split)
    (expected,) = made.translate([text], beam_size=1, options=options)
    assert "".join(made.stream(text, options=options)) == expected.translation


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="abAB .😀<>/", max_size=30), st.integers(1, 30))
def test_copied_literals_and_segments_join_to_the_line(text: str, trained_length: int) -> None:
    tokenizer = ByteTokenizer(lowercase=False)
    splitter = Splitter(tokenizer, "en", "auto", trained_length, 1000, copy_literals=True)
    (line,) = splitter.lines([text])
    if text.strip():
        joined = line.join([text[start:end] for start, end in line.spans])
        assert joined.replace(" ", "") == text.replace(" ", "")
