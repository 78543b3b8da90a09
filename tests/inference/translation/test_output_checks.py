"""Checks of outputs: repetitions, unusual lengths, broken characters."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inference.translation.test_assembly import translation_of

from manyheads.inference.translation.output_checks import (
    BrokenCharacters,
    _max_repetitions,
    _repeats_itself,
    _unusual_length,
)
from manyheads.inference.translation.parts import Line
from manyheads.search.interface import Hypothesis
from manyheads.text.characters import ByteTokenizer
from manyheads.text.tokenizer import TokenizerPair


@pytest.mark.parametrize(
    ("output", "text", "warnings"),
    [
        (b"a \xe2\x98", "a ☃", ["broken-character"]),
        (b"a\xe3 b", "a b", ["broken-character"]),
        ("a ☃".encode(), "a ☃", []),
    ],
)
def test_a_broken_character_is_left_out_or_copied_from_the_source_with_a_warning(output, text, warnings) -> None:
    tokenizer = ByteTokenizer(lowercase=False)
    line = Line("ein ☃", [(0, 5)], tokenizer.encode(["ein ☃"]))
    hypothesis = Hypothesis(tuple(4 + byte for byte in output), 0.0, 0.0, (), True)
    found = translation_of(TokenizerPair(tokenizer, tokenizer, joint=True), line, [hypothesis], [BrokenCharacters])
    assert (found.translation, found.warnings) == (text, warnings)


def reference_repetitions(tokens: list[int]) -> int:
    most = 1
    for start in range(len(tokens)):
        for period in range(1, 17):
            passage, times = tokens[start : start + period], 1
            while (
                tokens[start + times * period : start + (times + 1) * period] == passage and len(passage) == period
            ):
                times += 1
            if times * period >= 8:
                most = max(most, times)
    return most


@settings(max_examples=80)
@given(
    st.lists(st.integers(0, 2), max_size=6),
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.integers(0, 9),
    st.lists(st.integers(0, 2), max_size=4),
)
def test_repetitions_are_counted_like_the_reference_implementation(before, passage, times, after) -> None:
    tokens = before + passage * times + after
    found, reference = _max_repetitions(tokens), reference_repetitions(tokens)
    assert found >= reference
    assert (found >= 4) == (reference >= 4) or found == reference + 1, "a loop may begin in its middle"


def test_a_repetition_is_reported_unless_the_source_has_it() -> None:
    assert _repeats_itself([5, 6, 7], [1, 2] * 6)
    assert not _repeats_itself([9] * 12, [1] * 12)
    assert not _repeats_itself([5, 6, 7], [1, 1, 1, 1]), "ha ha ha ha"
    assert not _repeats_itself([5, 6, 7], list(range(50)))


@pytest.mark.parametrize(
    ("source", "output", "unusual"), [(3, 19, False), (3, 20, True), (40, 10, False), (41, 10, True)]
)
def test_lengths_are_unusual_beyond_three_times_plus_ten(source, output, unusual) -> None:
    assert _unusual_length(source, output) == unusual
