"""Search options: refused when out of range, selected for some rows, named when on."""

from __future__ import annotations

import pytest

from manyheads.search.options import Sampling, SearchOptions


def options(**given: object) -> SearchOptions:
    needed = {
        "beam_size": 4,
        "length_penalty": 1.0,
        "max_length_ratio": 1.5,
        "max_length_offset": 3,
        "batch_tokens": 100,
    }
    return SearchOptions(**(needed | given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        {"beam_size": 0},
        {"n_best": 0},
        {"n_best": 5},
        {"length_penalty": -0.1},
        {"max_length_ratio": float("nan")},
        {"max_length_ratio": float("inf")},
        {"min_length_ratio": -1.0},
        {"coverage_penalty": -1.0},
        {"no_repeat_ngram": -1},
        {"diverse_groups": 3},
        {"diverse_groups": 2, "sampling": Sampling()},
        {"required": (((4,),),), "sampling": Sampling()},
        {"required": (((4,),),), "diverse_groups": 2},
        {"forbidden": (((),),)},
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused_by_name(given) -> None:
    with pytest.raises(ValueError, match=next(iter(given)).replace("_", ".")):
        options(**given)


def test_more_samples_may_be_drawn_than_a_beam_holds() -> None:
    assert options(n_best=9, sampling=Sampling()).n_best == 9


def test_options_that_are_on_are_named_for_engines_that_lack_them() -> None:
    assert options(n_best=2).in_use() == []
    assert options(diverse_strength=2.0, attention_layer=1).in_use() == [], "off without what they belong to"
    asked = options(
        diverse_groups=2, diverse_strength=2.0, attention_layer=1, alignment=True, prefixes=((4,),), rivals=1
    )
    assert asked.in_use() == [
        "diverse_groups",
        "diverse_strength",
        "rivals",
        "alignment",
        "attention_layer",
        "prefixes",
    ]


def test_some_of_the_rows_keep_what_was_asked_of_them() -> None:
    asked = options(prefixes=((4,), (), (5, 6)), forbidden=(((7,),), (), ((8,),)))
    part = asked.select_rows([2, 0])
    assert (part.prefixes, part.forbidden, part.required) == (((5, 6), (4,)), (((8,),), ((7,),)), ())
    assert part.select_rows([0]).beam_size == 4


def test_limits_follow_the_source_and_leave_room_for_what_must_come() -> None:
    rows = [[4] * 2, [4] * 10, [4] * 2]
    assert options().longest(rows, 100) == [6, 18, 6]
    assert options().longest(rows, 7) == [6, 7, 6]
    asked = options(prefixes=((4,) * 9, (4,), ()), required=((), ((5,),), ((5,) * 4, (6,) * 3)))
    assert asked.longest(rows, 100) == [9, 18, 7]
    assert options(min_length_ratio=0.8).shortest(rows) == [1, 8, 1]


@pytest.mark.parametrize(
    "name", ["beam_size", "length_penalty", "max_length_ratio", "max_length_offset", "batch_tokens"]
)
def test_an_engine_gets_every_setting_of_the_run(name: str) -> None:
    given = {one: value for one, value in vars(options()).items() if one != name}
    with pytest.raises(TypeError, match=name):
        SearchOptions(**given)
