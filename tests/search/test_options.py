"""Search options: values out of range are refused, and a run completes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from manyheads.config.schema import SearchConfig
from manyheads.errors import UsageError
from manyheads.search.options import _MAX_VALUES, Constraints, Sampling, SearchOptions


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
        {"length_penalty": -0.1},
        {"max_length_ratio": float("nan")},
        {"max_length_ratio": float("inf")},
        {"min_length_ratio": -1.0},
        {"no_repeat_ngram": -1},
        {"split": "words"},
        {"length_penalty": 2_147_483_647},
        {"beam_size": 100_000},
        {"n_best": 10**12, "sampling": Sampling()},
    ],
    ids=str,
)
def test_invalid_options_are_refused_by_name(changes) -> None:
    with pytest.raises(UsageError, match=next(iter(changes))):
        make_options(**changes)


def test_an_empty_sequence_of_tokens_is_refused() -> None:
    for changes in ({"forbidden": ((),)}, {"required": ((4,), ())}):
        with pytest.raises(ValueError, match="empty"):
            Constraints(**changes)


def test_options_are_completed_by_the_settings_of_the_run() -> None:
    settings = SearchConfig(beam_size=3, length_penalty=0.5, no_repeat_ngram=2, batch_tokens=77)
    completed = SearchOptions(max_length_ratio=1.0, no_repeat_ngram=0, alternatives=4).complete(vars(settings))
    assert (completed.beam_size, completed.length_penalty, completed.batch_tokens) == (3, 0.5, 77)
    assert (completed.max_length_ratio, completed.no_repeat_ngram, completed.alternatives) == (1.0, 0, 4)
    assert None not in vars(replace(completed, sampling=Sampling())).values()


def test_a_beam_has_room_for_all_outputs_and_samples_need_none() -> None:
    settings = SearchConfig(beam_size=3)
    assert SearchOptions(n_best=5).complete(vars(settings)).beam_size == 5
    assert SearchOptions(n_best=5, beam_size=2).complete(vars(settings)).beam_size == 5
    assert SearchOptions(n_best=5, sampling=Sampling()).complete(vars(settings)).beam_size == 3


def test_a_search_with_rules_or_a_second_pass_is_not_plain() -> None:
    assert make_options(n_best=2, token_scores=False, attention_layer=1).plain
    for changes in ("sampling", Sampling()), ("no_repeat_ngram", 1), ("min_length_ratio", 0.1), ("alignment", True):
        assert not make_options(**dict([changes])).plain


def test_length_limits_follow_the_source_and_allow_prefixes_and_required_sequences() -> None:
    rows = [[4] * 2, [4] * 10, [4] * 2]
    assert make_options().longest(rows, 100) == [6, 18, 6]
    assert make_options().longest(rows, 7) == [6, 7, 6]
    constraints = [
        Constraints((4,) * 9),
        Constraints((4,), required=((5,),)),
        Constraints(required=((5,) * 4, (6,) * 3)),
    ]
    assert make_options().longest(rows, 100, constraints) == [9, 18, 7]
    assert make_options(min_length_ratio=0.8).shortest(rows) == [1, 8, 1]


def test_the_limits_are_those_of_the_settings() -> None:
    limits = {
        name: schema["maximum"]
        for name, schema in SearchConfig.model_json_schema()["properties"].items()
        if name in _MAX_VALUES
    }
    assert limits == {name: _MAX_VALUES[name] for name in limits}
    assert len(limits) == 6
