"""The state of the random generators: of several processes each has its own, and each goes on with it."""

from __future__ import annotations

import torch
from torch import Tensor

from manyheads.training.distributed import ALONE, World
from manyheads.training.snapshot import generators_of_all, restore_generators, seed_process

CPU = torch.device("cpu")
SEED = 7


def draws_of(rank: int) -> Tensor:
    """What a process of a new run draws after the first weights."""
    torch.manual_seed(SEED)
    seed_process(SEED, rank)
    return torch.rand(11)


def gathered(processes: int) -> dict[str, Tensor]:
    """The states of as many processes, each some draws into its training."""
    found: dict[str, Tensor] = {}
    for rank in range(processes):
        draws_of(rank)
        (state,) = generators_of_all(CPU, ALONE).values()
        found[f"generator.cpu.{rank}"] = state
    return found


def next_draws(states: dict[str, Tensor], rank: int, processes: int) -> Tensor:
    torch.manual_seed(99)
    restore_generators(states, CPU, World(rank, processes), SEED)
    return torch.rand(11)


def test_dropout_falls_differently_in_each_process_and_in_each_run() -> None:
    found = [draws_of(rank) for rank in range(4)]
    torch.manual_seed(SEED + 1)
    seed_process(SEED + 1, 1)
    found.append(torch.rand(11))
    assert not any(torch.equal(one, other) for place, one in enumerate(found) for other in found[:place])


def test_the_first_process_draws_what_one_alone_draws() -> None:
    torch.manual_seed(SEED)
    assert torch.equal(draws_of(0), torch.manual_seed(SEED) and torch.rand(11))


def test_each_process_goes_on_where_it_stood() -> None:
    states = gathered(12)  # the end of 11 is that of 1
    for rank in range(12):
        draws_of(rank)
        assert torch.equal(torch.rand(11), next_draws(states, rank, 12))


def test_a_process_that_was_not_there_before_draws_by_its_own_seed() -> None:
    states = gathered(1)
    found = [next_draws(states, rank, 3) for rank in range(3)]
    assert torch.equal(found[1], draws_of(1))
    assert torch.equal(found[2], draws_of(2))
    assert not torch.equal(found[0], draws_of(0)), "which goes on"
