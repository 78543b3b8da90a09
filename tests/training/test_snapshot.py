"""The states of the random generators: each process has its own, and resumes from it."""

from __future__ import annotations

import torch
from torch import Tensor

from manyheads.training.distributed import ALONE, World
from manyheads.training.snapshot import generators_of_all, restore_generators, seed_process

CPU = torch.device("cpu")
SEED = 7


def draws_of(rank: int) -> Tensor:
    """Return the draws of a process of a new run after the initial weights."""
    torch.manual_seed(SEED)
    seed_process(SEED, rank)
    return torch.rand(11)


def gathered_states(processes: int) -> dict[str, Tensor]:
    """Return the generator states of several processes, each after some draws."""
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


def test_random_numbers_differ_between_processes_and_between_seeds() -> None:
    found = [draws_of(rank) for rank in range(4)]
    torch.manual_seed(SEED + 1)
    seed_process(SEED + 1, 1)
    found.append(torch.rand(11))
    assert not any(torch.equal(draws, other) for index, draws in enumerate(found) for other in found[:index])


def test_the_first_process_draws_as_a_single_process_does() -> None:
    torch.manual_seed(SEED)
    assert torch.equal(draws_of(0), torch.manual_seed(SEED) and torch.rand(11))


def test_each_process_resumes_from_its_own_generator_state() -> None:
    states = gathered_states(12)  # the names of ranks 1 and 11 end in the same digit
    for rank in range(12):
        draws_of(rank)
        assert torch.equal(torch.rand(11), next_draws(states, rank, 12))


def test_an_additional_process_draws_from_its_own_seed() -> None:
    states = gathered_states(1)
    found = [next_draws(states, rank, 3) for rank in range(3)]
    assert torch.equal(found[1], draws_of(1))
    assert torch.equal(found[2], draws_of(2))
    assert not torch.equal(found[0], draws_of(0)), "the first process resumes"
