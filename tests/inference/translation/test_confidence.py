"""The confidence in a translation follows its chrF, and an output with a sign of failure is never trusted."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from tests.tolerances import approx, within

from manyheads.inference.translation.confidence import ConfidenceModel, OutputMeasures, fit_confidence, measure
from manyheads.inference.translation.unlike_training import SourceModel

MODEL = ConfidenceModel(bias=0.5, weights=(0.2, 0.4, -0.1, -0.3), usual_ratio=0.1, limits=(0.4, 0.6))


def outputs(count: int, seed: int = 1) -> tuple[list[OutputMeasures], list[float]]:
    """Return measures of outputs, and a chrF that is linear in them, with noise."""
    rng = random.Random(seed)
    measured = [
        OutputMeasures(-rng.random(), rng.random(), 3 + rng.random(), rng.gauss(0.2, 0.3)) for _ in range(count)
    ]
    chrf = [
        0.4 + 0.3 * measures.log_probability + 0.2 * measures.probability - 0.1 * abs(measures.length_ratio - 0.2)
        for measures in measured
    ]
    return measured, [value + rng.gauss(0, 0.02) for value in chrf]


def test_the_fit_orders_new_outputs_by_their_chrf_and_meets_its_size() -> None:
    model = fit_confidence(*outputs(200))
    measured, chrf = outputs(300, seed=2)
    estimates = [model.estimate(measures) for measures in measured]
    assert sum(estimates) / len(estimates) == within(sum(chrf) / len(chrf), 0.02)
    pairs = [(first, second) for first in range(0, 300, 3) for second in range(1, 300, 7)]
    agreeing = [(chrf[a] > chrf[b]) == (estimates[a] > estimates[b]) for a, b in pairs]
    assert sum(agreeing) > 0.85 * len(pairs)


def test_a_fifth_of_the_fitted_outputs_is_low_and_half_of_them_high() -> None:
    measured, chrf = outputs(200)
    model = fit_confidence(measured, chrf)
    levels = [model.level(model.estimate(measures)) for measures in measured]
    assert [levels.count(name) / 200 for name in ("low", "medium", "high")] == within([0.2, 0.3, 0.5], 0.02)


def test_outputs_that_are_all_equal_are_low() -> None:
    model = fit_confidence([OutputMeasures(-5.0, 0.01, 3.0, 0.0)] * 20, [0.0] * 20)
    assert model.level(model.estimate(OutputMeasures(-5.0, 0.01, 3.0, 0.0))) == "low"


def test_the_measures_are_of_all_parts_of_a_line() -> None:
    sources = SourceModel([0, 0, 0, 5, 5, 5], [3, 4, 2], 1.0, (9.0, 9.0))
    rows = [[3, 4], [5]]
    measured = measure([math.log(0.5), math.log(0.25), 0.0, 0.0], rows, sources)
    surprise = (sources.surprise([3, 4]) + sources.surprise([5])) / 5
    assert tuple(measured) == approx((math.log(0.125) / 4, 2.75 / 4, surprise, math.log(4 / 5)))
    assert measure([0.0], rows, None).surprise == 0


@pytest.mark.parametrize("name", ["unlike-training", "repetition", "length-ratio", "broken-character", "truncated"])
def test_a_sign_of_failure_makes_the_likeliest_output_low(name: str) -> None:
    likely = OutputMeasures(0.0, 1.0, 0.0, 0.1)
    assert MODEL.level(MODEL.estimate(likely, ["sentence-cut"])) == "high"
    failed = MODEL.estimate(likely, [name], truncated=name == "truncated")
    assert MODEL.level(failed) == "low"
    assert failed == approx(0.2)


@pytest.mark.parametrize(("bad", "levels"), [(0, [1, 0, 199]), (10, [20, 30, 150]), (100, [40, 60, 100])])
def test_where_few_validation_outputs_are_bad_few_outputs_are_called_unsure(bad: int, levels: list[int]) -> None:
    measured = [OutputMeasures(-0.01 * number, 1 - 0.001 * number, 1.0, 0.0) for number in range(200)]
    model = fit_confidence(
        measured, [0.9] * (200 - bad) + [0.5] * bad if bad else [1 - 0.001 * n for n in range(200)]
    )
    found = [model.level(model.estimate(measures)) for measures in measured]
    assert [found.count(name) for name in ("low", "medium", "high")] == within(levels, 2)


def test_the_confidence_is_from_0_to_1() -> None:
    assert MODEL.estimate(OutputMeasures(-90.0, 0.0, 9.0, 9.0)) == 0
    assert MODEL.estimate(OutputMeasures(9.0, 9.0, 0.0, 0.1)) == 1


def test_the_json_form_is_the_model() -> None:
    assert ConfidenceModel.from_json(json.loads(json.dumps(MODEL.to_json()))) == MODEL


@pytest.mark.parametrize(
    "damage", [{"weights": [1.0]}, {"bias": "x"}, {"limits": [0.1, math.nan]}, {"usual_ratio": None}, None]
)
def test_a_damaged_document_is_refused(damage: Any) -> None:
    content = None if damage is None else MODEL.to_json() | damage
    with pytest.raises(ValueError, match="no model of confidence"):
        ConfidenceModel.from_json(content)
