"""The time of a step is that of the last run, or calculated from measured updates."""

from __future__ import annotations

from pathlib import Path

from tests.improve.build.parts import builder_of, plan_of

from manyheads.config.schema import Config
from manyheads.improve.build.estimate import _with_shape, estimate_seconds


def test_the_time_of_a_training_is_measured_and_that_of_a_step_that_never_ran_is_unknown(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    statuses = builder_of(plan).statuses()
    few = estimate_seconds(plan, statuses["backward"])
    many = estimate_seconds(plan_of(tmp_path, "steps.backward.training.steps=2000"), statuses["backward"])
    assert few is not None
    assert many is not None
    assert many > few > 0
    assert estimate_seconds(plan, statuses["back"]) is None
    limited = plan_of(tmp_path, "steps.backward.training.max_minutes=3")
    assert estimate_seconds(limited, statuses["backward"]) == 180


def test_a_model_initialized_with_some_layers_of_another_has_the_shape_of_these_layers() -> None:
    data = {"source": "de", "target": "en", "train": "train", "valid": "valid"}
    shape = {"d_model": 64, "num_encoder_layers": 5, "num_decoder_layers": 4}
    start = Config(data=data, model=shape, tokenizer={"vocab_size": 500})
    fine_tuned = Config(data=data, model={"init_from": "teacher", "init_decoder_layers": 1})
    found = _with_shape(fine_tuned, start)
    assert (found.model.d_model, found.tokenizer.vocab_size) == (64, 500)
    assert (found.model.num_encoder_layers, found.model.num_decoder_layers) == (5, 1)
