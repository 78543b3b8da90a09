"""Word alignment of planted attention weights, and the detection of repetitions and unusual lengths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.test_interface import KINDS, TOKENIZERS

from manyheads.tasks.assembly import (
    max_repetitions,
    pharaoh,
    repeats_itself,
    unusual_length,
    word_alignment,
    word_numbers,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["der Hund läuft", "Hunde", "a ☃ b c", ""])
def test_tokens_belong_to_the_words_of_the_text(kind, text) -> None:
    tokenizer = TOKENIZERS[kind]
    (ids,) = tokenizer.encode([text])
    numbers = word_numbers(tokenizer, ids)
    assert len(numbers) == len(ids)
    for number, word in enumerate(tokenizer.decode(ids).split()):
        own = [one for one, belongs in zip(ids, numbers, strict=True) if belongs == number]
        assert tokenizer.decode(own).strip() == word


def test_the_first_bytes_of_a_blank_are_no_word_of_their_own() -> None:
    """A model that has learned little writes any bytes. U+3000 is a blank; its first byte alone is a letter."""
    tokenizer = TOKENIZERS["bpe"]
    pieces = tokenizer.pieces(range(tokenizer.size))
    blank = [pieces.index(f"<0x{byte:02X}>") for byte in "\u3000".encode()]
    ids = [*tokenizer.encode(["der"])[0], pieces.index("▁"), *blank]
    assert tokenizer.decode(ids).split() == ["der"]
    assert set(word_numbers(tokenizer, ids)) == {0}
    assert word_numbers(tokenizer, blank) == [0, 0, 0]


@settings(max_examples=100)
@given(st.data())
def test_a_planted_alignment_is_found(data) -> None:
    """Each target word attends to one source word; its weight is spread over the tokens of both, with noise."""
    source_sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    target_sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    planted = [data.draw(st.integers(0, len(source_sizes) - 1)) for _ in target_sizes]
    source = [word for word, size in enumerate(source_sizes) for _ in range(size)]
    target = [word for word, size in enumerate(target_sizes) for _ in range(size)]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    attention = rng.random((len(target) + 1, len(source) + 1)) * 0.3 / len(source)
    attention[:, -1] = 0.9  # the end mark takes most, and counts for nothing
    attention[-1] = 5.0  # nor does what the end symbol looked at
    for row, word in enumerate(target):
        columns = [column for column, one in enumerate(source) if one == planted[word]]
        attention[row, columns] += 0.6 / len(columns)
    assert word_alignment(attention.tolist(), source, target) == [
        (word, number) for number, word in enumerate(planted)
    ]


def test_weights_of_subwords_add_up() -> None:
    """The weights of the two tokens of a word together exceed the weight of another word."""
    attention = [[0.3, 0.3, 0.4, 0.0]]
    assert word_alignment(attention, [0, 0, 1], [0]) == [(0, 0)]
    assert word_alignment(attention, [0, 1, 2], [0]) == [(2, 0)]
    both = [[0.6, 0.4, 0.0], [0.1, 0.9, 0.0]]
    assert word_alignment(both, [0, 1], [0, 0]) == [(1, 0)]
    assert word_alignment(both, [0, 1], [0, 1]) == [(0, 0), (1, 1)]


def test_the_first_of_equals_is_taken() -> None:
    assert word_alignment([[0.25, 0.25000001, 0.25, 0.25]], [0, 1, 2], [0]) == [(0, 0)]


def test_no_tokens_have_no_links() -> None:
    assert word_alignment([], [0], []) == []
    assert word_alignment([[1.0]], [], [0]) == []


def test_links_are_written_as_pairs() -> None:
    assert pharaoh([(0, 0), (3, 1)]) == "0-0 3-1"
    assert pharaoh([]) == ""


def slow_repetitions(tokens: list[int]) -> int:
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


@settings(max_examples=200)
@given(
    st.lists(st.integers(0, 2), max_size=6),
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.integers(0, 9),
    st.lists(st.integers(0, 2), max_size=4),
)
def test_repetitions_are_counted_as_by_hand(before, passage, times, after) -> None:
    tokens = before + passage * times + after
    found, slow = max_repetitions(tokens), slow_repetitions(tokens)
    assert found >= slow
    assert (found >= 4) == (slow >= 4) or found == slow + 1, "a loop may begin in its middle"


def test_a_loop_is_one_unless_the_source_has_it_too() -> None:
    assert repeats_itself([5, 6, 7], [1, 2] * 6)
    assert not repeats_itself([9] * 12, [1] * 12)
    assert not repeats_itself([5, 6, 7], [1, 1, 1, 1]), "ha ha ha ha"
    assert not repeats_itself([5, 6, 7], list(range(50)))


@pytest.mark.parametrize(
    ("source", "output", "odd"), [(3, 19, False), (3, 20, True), (40, 10, False), (41, 10, True)]
)
def test_lengths_are_odd_beyond_three_times_and_ten(source, output, odd) -> None:
    assert unusual_length(source, output) == odd
