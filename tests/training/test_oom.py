"""Out of memory: the same gradient from halved batches, or a clear error."""

from __future__ import annotations

import math

import pytest
import torch
from tests.tolerances import approx, assert_close
from tests.training.parts import PairUpdates, TrainerHarness, random_pairs, record_gradients, tiny_model, weights
from torch import Tensor

from manyheads.errors import TrainingError
from manyheads.tensors.pairs import Batch
from manyheads.training.distributed import World
from manyheads.training.oom import _halve

NO_MEMORY = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")


def limit_rows(harness: TrainerHarness, rows: int) -> list[int]:
    """Let the forward pass of more than `rows` pairs run out of memory; return the sizes that were tried."""
    tried: list[int] = []

    def check(module: torch.nn.Module, arguments: tuple[Batch]) -> None:
        tried.append(len(arguments[0].source))
        if tried[-1] > rows:
            raise NO_MEMORY

    harness.trainer.updater.objective.register_forward_pre_hook(check)
    return tried


@pytest.mark.parametrize("times", [0, 1, 2, 5])
def test_halving_keeps_the_pairs_and_cuts_the_padding(times: int) -> None:
    batch = PairUpdates(*random_pairs(11)).batch(range(11))
    parts = _halve([batch], times)
    assert len(parts) == min(2**times, 11)
    rows = [row[row != 1].tolist() for part in parts for row in part.target_out]
    assert rows == [row[row != 1].tolist() for row in batch.target_out]
    for part in parts:
        assert part.source_tokens == int((part.source != 1).sum())
        assert part.target_tokens == int((part.target_out != 1).sum())
        assert bool((part.source != 1).any(0).all() and (part.target_out != 1).any(0).all()), "no empty column"
        assert part.target_in.shape == part.target_out.shape
    assert sum(part.target_tokens for part in parts) == batch.target_tokens


@pytest.mark.parametrize("rows", [4, 2, 1])
def test_the_gradient_of_halves_is_that_of_the_whole(rows: int) -> None:
    def harness() -> TrainerHarness:
        return TrainerHarness(tiny_model(), PairUpdates(*random_pairs(14), size=7), steps=3, clip_norm=None)

    whole, limited = harness(), harness()
    expected, found = record_gradients(whole), record_gradients(limited)
    whole.trainer.run()
    tried = limit_rows(limited, rows)
    limited.trainer.run()
    for expected_step, found_step in zip(expected, found, strict=True):
        assert_close(found_step, expected_step, dtype=torch.float32)
    assert [report.loss for report in limited.listener.steps] == approx([r.loss for r in whole.listener.steps])
    splits = limited.trainer.oom.splits
    assert splits == math.ceil(math.log2(7 / rows)) or rows == 4
    assert tried.count(7) == 1, "a batch that is too large is tried once"
    assert sum("memory ran out" in text for text in limited.listener.messages) == splits


def test_gradients_of_a_failed_backward_pass_are_dropped() -> None:
    def harness() -> TrainerHarness:
        return TrainerHarness(tiny_model(), PairUpdates(*random_pairs(6), size=6), steps=1, clip_norm=None)

    whole, limited = harness(), harness()
    expected, found = record_gradients(whole), record_gradients(limited)
    whole.trainer.run()
    calls = 0

    def fail_once(gradient: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == 2:  # the first call is the trial of the heaviest update
            raise NO_MEMORY
        return gradient

    limited.model.source_embedding.tokens.weight.register_hook(fail_once)
    limited.trainer.run()
    assert calls == 4
    assert_close(found[0], expected[0], dtype=torch.float32)


def test_the_trial_of_the_heaviest_update_does_not_change_training() -> None:
    def harness() -> TrainerHarness:
        return TrainerHarness(tiny_model(dropout=0.4), PairUpdates(*random_pairs(14), size=7), steps=3)

    torch.manual_seed(3)
    first = harness()
    torch.manual_seed(3)
    first.trainer.run()
    second = harness()
    second.trainer.try_heaviest = lambda: None  # type: ignore[method-assign]
    torch.manual_seed(3)
    second.trainer.run()
    assert all(torch.equal(tensor, weights(second.model)[name]) for name, tensor in weights(first.model).items())
    third = harness()
    limit_rows(third, 3)
    third.trainer.try_heaviest()
    assert third.trainer.oom.splits == 2
    assert third.trainer.progress.step == 0


def test_a_failed_attempt_does_not_advance_the_random_numbers() -> None:
    """Dropout in halves after a failure is the same as without a failure."""

    def harness() -> TrainerHarness:
        found = TrainerHarness(tiny_model(dropout=0.4), PairUpdates(*random_pairs(6), size=6), steps=2)
        found.trainer.try_heaviest = lambda: None  # type: ignore[method-assign]
        return found

    limited, halved = harness(), harness()
    calls = 0

    def fail_once(gradient: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise NO_MEMORY
        return gradient

    limited.model.source_embedding.tokens.weight.register_hook(fail_once)
    halved.trainer.oom.splits = 1
    for each in (limited, halved):
        torch.manual_seed(3)
        each.trainer.run()
    assert limited.trainer.oom.splits == 1
    assert all(torch.equal(tensor, weights(halved.model)[name]) for name, tensor in weights(limited.model).items())


def test_micro_batches_are_halved_until_each_is_a_single_pair() -> None:
    harness = TrainerHarness(updates=PairUpdates(*random_pairs(3), size=3, parts=2), steps=2)
    tried = limit_rows(harness, 1)
    harness.trainer.run()
    assert tried == [2, *[1] * 3 * 3], "the trial, and two updates of three pairs"


def test_resumed_training_does_not_try_sizes_again_that_were_too_large() -> None:
    first, second = (
        TrainerHarness(updates=PairUpdates(*random_pairs(14), size=7), steps=steps) for steps in (3, 5)
    )
    limit_rows(first, 4)
    first.trainer.run()
    snapshot = first.trainer.snapshot()
    second.trainer.restore(snapshot)
    tried = limit_rows(second, 4)
    second.trainer.run()
    assert set(tried) == {3, 4}
    assert second.listener.messages == []


def test_a_process_of_several_does_not_halve_its_batches_alone() -> None:
    harness = TrainerHarness(steps=3)
    harness.trainer.updater.world = World(0, 2)
    tried = limit_rows(harness, 2)
    with pytest.raises(TrainingError, match=r"memory ran out in an update of lines \[.*batch_tokens"):
        harness.trainer.run()
    assert tried == [5]


def test_a_single_pair_that_does_not_fit_into_memory_is_named() -> None:
    harness = TrainerHarness(steps=3)
    limit_rows(harness, 0)
    with pytest.raises(TrainingError, match=r"single example of lines \[.*\(CUDA out of memory.*\)\. .*max_length"):
        harness.trainer.run()
    assert harness.saved == []


@pytest.mark.parametrize("where", ["the model", "the optimiser"])
def test_other_errors_are_not_taken_for_a_lack_of_memory(where: str) -> None:
    harness = TrainerHarness(steps=3)

    def fail(*_: object) -> None:
        raise RuntimeError("shapes cannot be multiplied")

    if where == "the model":
        harness.trainer.updater.objective.register_forward_pre_hook(fail)
    else:
        harness.trainer.updater.optimizer.register_step_pre_hook(fail)
    with pytest.raises(RuntimeError, match="shapes"):
        harness.trainer.run()


def test_out_of_memory_in_the_optimiser_ends_training_and_saves_nothing() -> None:
    harness = TrainerHarness(steps=3, save_every=1)
    calls = 0

    def fail(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise NO_MEMORY

    harness.trainer.updater.optimizer.register_step_pre_hook(fail)
    with pytest.raises(TrainingError, match="memory ran out in the optimiser"):
        harness.trainer.run()
    assert harness.saved_steps == [1]
