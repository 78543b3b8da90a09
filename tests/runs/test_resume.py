"""The checkpoints of a training in its run directory, before and after their validation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.training.parts import CollectingListener

from manyheads.checkpoint.checkpoints import TrainingRun
from manyheads.config.schema import TrainingConfig
from manyheads.errors import RunError, TrainingError
from manyheads.runs.resume import RunStorage, forget_metrics_after
from manyheads.training.distributed import ALONE, World
from manyheads.training.snapshot import Snapshot


def storage_of(run: TrainingRun, world: World = ALONE, **settings: Any) -> RunStorage:
    config = TrainingConfig(**({"save_every": 5} | settings))
    return RunStorage(run, config, world, CollectingListener())


def snapshot(step: int, *, pending: bool = True) -> Snapshot:
    weights = {"weight": torch.full((2, 3), float(step))}
    return Snapshot(weights, {"moment": torch.ones(5)}, state(step, pending=pending))


def state(step: int, *, pending: bool) -> dict[str, Any]:
    return {"progress": {"step": step, "pending": pending}}


def test_the_previous_checkpoint_is_kept_until_the_validation_is_known(tmp_path: Path) -> None:
    """Otherwise a validation that fails would leave no good checkpoint."""
    run = TrainingRun(tmp_path)
    storage = storage_of(run)
    storage.save(snapshot(5))
    storage.confirm(5, state(5, pending=False), None)
    storage.save(snapshot(10))
    storage.confirm(10, state(10, pending=False), None)
    storage.save(snapshot(15))
    assert run.checkpoints.steps() == [5, 10, 15]
    storage.confirm(15, state(15, pending=False), None)
    assert run.checkpoints.steps() == [10, 15]
    storage.save(snapshot(20))
    storage.discard(20)
    assert run.checkpoints.steps() == [10, 15]


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize("part", ["model", "optimizer"])
def test_a_checkpoint_that_is_not_finite_is_not_saved(tmp_path: Path, part: str, value: float) -> None:
    run = TrainingRun(tmp_path)
    storage, bad = storage_of(run), snapshot(10)
    storage.save(snapshot(5))
    next(iter(getattr(bad, part).values())).view(-1)[-1] = value
    with pytest.raises(TrainingError, match=r"is not finite at step 10: not saved\. Try a lower"):
        storage.save(bad)
    assert run.checkpoints.steps() == [5]


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"kind": "step", "st', '{"kind": "step"}', '{"kind": "x", "step": 1}', "\udcff", "[" * 9_000],
)
def test_a_damaged_line_of_the_log_is_forgotten(tmp_path: Path, line: str) -> None:
    run = TrainingRun(tmp_path)
    good = '{"kind": "step", "step": 1}\n'
    for content in (f"{line}\n{good}", f"{good}{line}"):  # the last line may be cut by a kill
        run.metrics_path.write_text(content, encoding="utf-8", errors="surrogateescape")
        forget_metrics_after(run, 1)
        assert run.metrics_path.read_text(encoding="utf-8") == good


def test_a_confirmed_checkpoint_has_the_new_state_and_its_tensors(tmp_path: Path) -> None:
    run = TrainingRun(tmp_path)
    storage = storage_of(run)
    storage.save(snapshot(5))
    assert run.checkpoints.read(5).state["progress"]["pending"]
    storage.confirm(5, state(5, pending=False), {"weight": torch.full((2, 3), 7.0)})
    checkpoint = run.checkpoints.read(5)
    assert not checkpoint.state["progress"]["pending"]
    assert torch.equal(checkpoint.model["weight"], torch.full((2, 3), 5.0))
    assert torch.equal(load_file(run.weights_path)["weight"], torch.full((2, 3), 7.0))


def test_weights_that_are_not_the_best_are_not_published(tmp_path: Path) -> None:
    run = TrainingRun(tmp_path)
    storage = storage_of(run)
    storage.save(snapshot(5))
    storage.confirm(5, state(5, pending=False), None)
    with pytest.raises(RunError, match=r"no model\.safetensors yet"):
        _ = run.weights_path


def test_only_the_first_of_several_processes_writes(tmp_path: Path) -> None:
    run = TrainingRun(tmp_path)
    storage = storage_of(run, World(rank=1, size=2))
    storage.save(snapshot(5))
    storage.confirm(5, state(5, pending=False), {"weight": torch.zeros(1)})
    storage.discard(5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("pending", "kept"), [(False, ["step 4", "validation 4"]), (True, ["step 4"])])
def test_a_validation_that_will_be_repeated_is_removed_from_the_log(
    tmp_path: Path, pending: bool, kept: list[str]
) -> None:
    run = TrainingRun(tmp_path)
    records = [("step", 4), ("validation", 4), ("step", 5), ("validation", 8)]
    lines = [json.dumps({"kind": kind, "step": step}) for kind, step in records]
    run.metrics_path.write_text("".join(f"{line}\n" for line in lines))
    forget_metrics_after(run, 4, pending=pending)
    remaining = [json.loads(line) for line in run.metrics_path.read_text().splitlines()]
    assert [f"{record['kind']} {record['step']}" for record in remaining] == kept
