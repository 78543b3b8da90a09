"""Random texts to copy: varied, equal for equal seeds, and never of a script that the corpus has."""

from __future__ import annotations

from random import Random

import pytest

from manyheads.data.augment_copies import COPIES, make_copy, make_tag, other_scripts


@pytest.mark.parametrize("name", sorted(COPIES))
def test_random_texts_are_varied_and_depend_on_the_seed_alone(name: str) -> None:
    made = [COPIES[name](Random(seed)) for seed in range(200)]
    assert made == [COPIES[name](Random(seed)) for seed in range(200)]
    assert len(set(made)) > 30
    assert all(text and text == text.strip() for text in made)


def test_a_tag_has_a_start_and_the_end_of_the_same_name() -> None:
    for seed in range(50):
        start, end = make_tag(Random(seed))
        assert end == f"</{start[1:-1].split()[0]}>"


def test_random_texts_have_no_script_of_the_corpus() -> None:
    scripts = other_scripts(["안녕하세요", "Hello"])
    assert not any(first <= ord("안") <= last for first, last in scripts)
    texts = "".join(make_copy(Random(seed), scripts) for seed in range(300))
    assert not any("가" <= letter <= "힣" for letter in texts)
    assert any("א" <= letter <= "ת" for letter in texts), "other scripts are copied"


def test_random_punctuation_is_made_only_for_a_line_of_its_own() -> None:
    assert "..." in {make_copy(Random(seed), alone=True) for seed in range(300)}
    assert "..." not in {make_copy(Random(seed)) for seed in range(300)}
