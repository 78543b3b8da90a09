"""A plan is read with every mistake named, and its steps are sorted after their dependencies."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.improve.build.parts import plan_of, write_plan

from manyheads.errors import UsageError
from manyheads.improve.build.estimate import _with_shape
from manyheads.improve.build.plan import load_plan, plan_paths, resolve_plan
from manyheads.improve.build.schema import KINDS

TRAIN = 'kind="train",text="mixed",valid="parallel"'


@pytest.mark.parametrize("name", sorted(plan_paths()))
def test_every_plan_of_the_recipes_is_valid(name: str, tmp_path: Path) -> None:
    plan = load_plan(resolve_plan(name), tmp_path)
    assert {vars(step)["kind"] for step in plan.steps.values()} <= set(KINDS)
    student = plan.configs["student"]
    if models := plan.steps["student"].models:
        student = _with_shape(student, plan.configs[models[0]])
    assert student.model.num_encoder_layers >= 3 * student.model.num_decoder_layers


def test_steps_are_sorted_after_their_dependencies(tmp_path: Path) -> None:
    path = write_plan(tmp_path)
    head, *tables = path.read_text(encoding="utf-8").split("\n[steps.")
    path.write_text(head + "".join(f"\n[steps.{table}\n" for table in reversed(tables)), encoding="utf-8")
    assert list(load_plan(path, tmp_path).steps) == ["backward", "back", "mixed"]


def test_a_step_that_trains_reads_the_texts_by_name(tmp_path: Path) -> None:
    symbols = 'tokenizer={symbols=["<bt>"]}'
    config = plan_of(tmp_path, f"steps.t={{{TRAIN},{symbols}}}").configs["t"]
    assert config.languages == ("de", "en")
    assert config.data.train == tuple(str(tmp_path / "out" / "mixed" / f"text.{side}") for side in ("de", "en"))


def test_a_text_without_the_language_that_a_step_needs_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"text\.english has no de; it has en"):
        plan_of(tmp_path, 'steps.backward.text="english"')


def test_the_nearest_plan_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no plan ko-em; did you mean ko-en\?"):
        resolve_plan("ko-em")
    write_plan(tmp_path / "mine").rename(tmp_path / "mine" / "mine.toml")
    with pytest.raises(UsageError, match=r"mine is a folder; name the \.toml file in it\."):
        resolve_plan(str(tmp_path / "mine"))
