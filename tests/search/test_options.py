"""Search options: values out of range are refused, rows are selected, and options in use are listed."""

from __future__ import annotations

import pytest

from manyheads.config.schema import SearchConfig
from manyheads.search.options import _MAX_VALUES, Sampling, SearchOptions


def make_options(**changes: object) -> SearchOptions:
    needed = {
        "beam_size": 4,
        "length_penalty": 1.0,
        "max_length_ratio": 1.5,
        "max_length_offset": 3,
        "batch_tokens": 100,
    }
    return SearchOptions(**(needed | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"beam_size": 0},
        {"n_best": 0},
        {"n_best": 5},
        {"length_penalty": -0.1},
        {"max_length_ratio": float("nan")},
        {"max_length_ratio": float("inf")},
        {"min_length_ratio": -1.0},
        {"no_repeat_ngram": -1},
        {"required": (((4,),),), "sampling": Sampling()},
        {"forbidden": (((),),)},
        {"length_penalty": 2_147_483_647},
        {"beam_size": 100_000},
        {"n_best": 10**12, "sampling": Sampling()},
    ],
    ids=str,
)
def test_invalid_options_are_refused_by_name(changes) -> None:
    with pytest.raises(ValueError, match=next(iter(changes)).replace("_", ".")):
        make_options(**changes)


def test_n_best_may_exceed_the_beam_size_when_sampling() -> None:
    assert make_options(n_best=9, sampling=Sampling()).n_best == 9


def test_options_in_use_are_listed() -> None:
    assert make_options(n_best=2).in_use() == []
    assert make_options(attention_layer=1).in_use() == [], "not in use without the option that it refines"
    chosen = make_options(attention_layer=1, alignment=True, prefixes=((4,),), alternatives=1)
    assert chosen.in_use() == ["alternatives", "alignment", "attention_layer", "prefixes"]


def test_selected_rows_keep_their_own_options() -> None:
    chosen = make_options(prefixes=((4,), (), (5, 6)), forbidden=(((7,),), (), ((8,),)))
    part = chosen.select_rows([2, 0])
    assert (part.prefixes, part.forbidden, part.required) == (((5, 6), (4,)), (((8,),), ((7,),)), ())
    assert part.select_rows([0]).beam_size == 4


def test_length_limits_follow_the_source_and_allow_prefixes_and_required_sequences() -> None:
    rows = [[4] * 2, [4] * 10, [4] * 2]
    assert make_options().longest(rows, 100) == [6, 18, 6]
    assert make_options().longest(rows, 7) == [6, 7, 6]
    chosen = make_options(prefixes=((4,) * 9, (4,), ()), required=((), ((5,),), ((5,) * 4, (6,) * 3)))
    assert chosen.longest(rows, 100) == [9, 18, 7]
    assert make_options(min_length_ratio=0.8).shortest(rows) == [1, 8, 1]


@pytest.mark.parametrize(
    "name", ["beam_size", "length_penalty", "max_length_ratio", "max_length_offset", "batch_tokens"]
)
def test_settings_of_a_run_have_no_defaults_in_search_options(name: str) -> None:
    incomplete = {key: value for key, value in vars(make_options()).items() if key != name}
    with pytest.raises(TypeError, match=name):
        SearchOptions(**incomplete)


def test_the_limits_are_those_of_the_settings() -> None:
    limits = {
        name: bound.le
        for name, setting in SearchConfig.model_fields.items()
        for bound in setting.metadata
        if hasattr(bound, "le") and name in _MAX_VALUES
    }
    assert limits == {name: _MAX_VALUES[name] for name in limits}
    assert len(limits) == 6
