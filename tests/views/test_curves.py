"""Curves are read from metrics.jsonl of a run that is training, was killed, or is of an old version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from manyheads.errors import RunError, UsageError
from manyheads.inference.inspect import curves
from manyheads.views.charts import HeatMap
from manyheads.views.curves import _CURVE_NAMES, _VIEWS, Curves
from manyheads.views.metrics import RunCurves, read_metrics
from manyheads.views.picture import Picture

GOLDEN = Path(__file__).parent.parent / "golden/format-1/run"


def step(number: int, **more: Any) -> dict[str, Any]:
    return {
        "kind": "step", "step": number, "total_steps": 100, "nll": 5 / number, "learning_rate": number / 10,
        "gradient_norm": 1.5, "target_tokens_per_second": 900.0, **more,
    }  # fmt: skip


def validation(number: int, **more: Any) -> dict[str, Any]:
    return {
        "kind": "validation", "step": number, "loss": 2.0, "perplexity": 7.4, "bleu": 20.0 + number, "chrf": None,
        "best": True, "sample": ["ein", "a", f"a{number}"], **more,
    }  # fmt: skip


def read(*records: dict[str, Any] | bytes) -> RunCurves:
    lines = [record if isinstance(record, bytes) else json.dumps(record).encode() + b"\n" for record in records]
    return read_metrics("run", "translation", lines)


def test_each_number_is_a_point_of_its_curve() -> None:
    found = read(step(10), step(20), validation(20), step(30), validation(30, best=False))
    assert {series.name: (series.steps, series.values) for series in found.series} == {
        "train_loss": ((10, 20, 30), (0.5, 0.25, 5 / 30)),
        "learning_rate": ((10, 20, 30), (1.0, 2.0, 3.0)),
        "gradient_norm": ((10, 20, 30), (1.5, 1.5, 1.5)),
        "tokens_per_second": ((10, 20, 30), (900.0, 900.0, 900.0)),
        "valid_loss": ((20, 30), (2.0, 2.0)),
        "perplexity": ((20, 30), (7.4, 7.4)),
        "bleu": ((20, 30), (40.0, 50.0)),
    }
    assert (found.steps, found.total_steps, found.best_step, found.unreadable) == (30, 100, 20, 0)
    assert [(sample.step, sample.output) for sample in found.samples] == [(20, "a20"), (30, "a30")]


def test_a_truncated_last_line_and_invalid_lines_are_counted_and_left_out() -> None:
    half = json.dumps(step(30)).encode()[:40]
    found = read(step(10), b"\n", b"\xff\xfe\n", b"[1]\n", b'{"step": "x"}\n', step(20), half)
    assert found.unreadable == 4
    series = found.of("train_loss")
    assert series is not None
    assert series.steps == (10, 20)
    assert "unreadable lines left out: 4" in "\n".join(Curves((found,)).lines())


def test_values_that_are_no_numbers_are_no_points() -> None:
    found = read(step(10, nll=None, gradient_norm="x"), step(20, learning_rate=True))
    assert found.of("gradient_norm") is not None
    names = ("train_loss", "gradient_norm", "learning_rate")
    assert [series.steps for series in found.series if series.name in names] == [(10,), (20,), (20,)]


def test_a_step_that_was_repeated_after_a_resume_has_the_later_value() -> None:
    found = read(step(10), step(20, nll=9.0), step(20, nll=1.0))
    series = found.of("train_loss")
    assert series is not None
    assert series.values == (0.5, 1.0)


def test_a_run_without_validations_or_without_records_can_be_shown() -> None:
    for found in (read(step(10)), read()):
        shown = Curves((found,))
        assert "no validation yet" in "\n".join(shown.lines())
        for name in shown.views:
            assert shown.render(Picture(name), "svg")
        assert Curves.from_dict(json.loads(shown.to_json())) == shown


def test_entropies_are_a_row_for_each_head() -> None:
    entropy = {"cross": [[1.0, 0.5], [0.25, 0.125]]}
    found = read(validation(20, attention_entropy=entropy), validation(40, attention_entropy=entropy))
    entropies = found.of("attention_entropy/cross/1/0")
    assert entropies is not None
    assert (entropies.steps, entropies.values) == ((20, 40), (0.25, 0.25))
    shown = Curves((found,))
    (chart,) = shown.charts(Picture("attention-entropy"))
    assert isinstance(chart, HeatMap)
    assert chart.rows.names == ["layer 0 head 0", "layer 0 head 1", "layer 1 head 0", "layer 1 head 1"]
    assert chart.columns.names == ["20", "40"]
    assert chart.values.tolist() == [[1.0, 1.0], [0.5, 0.5], [0.25, 0.25], [0.125, 0.125]]
    assert chart.hidden is None
    assert "entropy of the attention (nats)" in shown.render(Picture("attention-entropy"), "svg").decode()


def test_a_head_without_a_value_at_a_step_has_an_empty_cell() -> None:
    found = read(validation(20, attention_entropy={"cross": [[1.0]]}),
                 validation(40, attention_entropy={"cross": [[1.0, 2.0]]}))  # fmt: skip
    (chart,) = Curves((found,)).charts(Picture("attention-entropy"))
    assert isinstance(chart, HeatMap)
    assert chart.hidden is not None
    assert chart.hidden.tolist() == [[False, False], [True, False]]


def test_every_series_has_a_readable_name_and_axes_a_unit() -> None:
    series = {name for _, _, names in _VIEWS.values() for name in names}
    assert set(_CURVE_NAMES) == series
    assert not any("_" in name for name in _CURVE_NAMES.values())
    found = Curves((read(step(10), step(20), validation(20)),))
    assert [line.name for line in found.charts(Picture("loss"))[0].lines] == ["training loss", "validation loss"]  # type: ignore[union-attr]
    svg = found.render(Picture("loss"), "svg").decode()
    for text in ("training step", "cross-entropy (nats per token), logarithmic", "validation loss: 2"):
        assert text in svg


def test_samples_are_grouped_by_sentence() -> None:
    more = [["ein", "a", "b"], ["zwei", "two", "t"]]
    found = read(validation(20, samples=more), validation(40, samples=more), validation(60, samples="x"))
    table = Curves((found,)).charts(Picture("samples"))[0].data
    assert [(row[0], row[2], row[3]) for row in table.rows] == [
        ("ein", 20, "b"), ("ein", 40, "b"), ("ein", 60, "a60"), ("zwei", 20, "t"), ("zwei", 40, "t"),
    ]  # fmt: skip


def test_runs_are_distinguished_by_name_dash_and_marker() -> None:
    one, other = read(step(10), step(20)), read(step(10), step(30))
    both = Curves((one, RunCurves("other", *list(vars(other).values())[1:])))
    (chart,) = both.charts(Picture("loss"))
    assert [line.name for line in chart.lines] == ["run: training loss", "other: training loss"]  # type: ignore[union-attr]
    svg = both.render(Picture("loss"), "svg").decode()
    assert 'stroke-dasharray="7 3"' in svg
    assert "run: training loss" in svg
    assert {row[0] for row in chart.data.rows} == {"run", "other"}


def test_long_curves_are_thinned_in_the_picture_and_complete_in_the_table() -> None:
    found = Curves((read(*(step(number) for number in range(1, 2_002))),))
    (chart,) = found.charts(Picture("loss"))
    (line,) = chart.lines  # type: ignore[union-attr]
    assert len(line.x) <= 402
    assert (line.x[0], line.x[-1]) == (1.0, 2001.0)
    assert len(chart.data.rows) == 2_001


def test_a_real_run_of_an_old_version_is_drawn() -> None:
    found = curves([GOLDEN])
    assert found.runs[0].total_steps > 0
    for view in ("loss", "perplexity", "scores", "learning-rate", "gradient-norm", "speed", "samples"):
        assert view in found.views
        assert found.lines(Picture(view))
    assert [run.name for run in curves([GOLDEN, GOLDEN]).runs] == [str(GOLDEN), str(GOLDEN)]


def test_a_path_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not a directory"):
        curves([tmp_path / "none"])
    with pytest.raises(RunError, match="not a run"):
        curves([tmp_path])
    with pytest.raises(UsageError, match="list of run directories"):
        curves(str(GOLDEN))
    (tmp_path / "config.json").write_bytes((GOLDEN / "config.json").read_bytes())
    with pytest.raises(RunError, match=r"no metrics.jsonl yet"):
        curves([tmp_path])


def test_other_documents_are_refused_as_curves() -> None:
    with pytest.raises(UsageError, match="no curves"):
        Curves.from_dict({"format": "x"})
    with pytest.raises(UsageError, match="version 7"):
        Curves.from_dict({"format": "manyheads-curves", "version": 7})


@pytest.mark.parametrize("value", [1, True, "x", {"a": 1}, None])
def test_a_log_whose_samples_are_no_list_has_none(value: object) -> None:
    lines = [json.dumps({"kind": "validation", "step": 1, "loss": 2.0, "samples": value}).encode()]
    assert read_metrics("run", "translation", lines).samples == ()
