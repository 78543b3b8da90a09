"""Snapshots: all that a training needs to resume, with the states of torch's random generators in all processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from manyheads.tensors.sharded import full_tensor
from manyheads.training.distributed import World


@dataclass(frozen=True)
class Snapshot:
    """The content of a checkpoint: tensors by name, and a state for JSON.

    Attributes:
        model: the weights with which training continues.
        optimizer: moments of the optimiser, averaged weights, and states of the random generators.
        state: everything else.
    """

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


class Storage(Protocol):
    """The checkpoints of a training; each is stored before its validation, which may take long."""

    def save(self, snapshot: Snapshot) -> None:
        """Store a checkpoint; the one before it is kept until `confirm` if its validation is pending."""
        ...

    def confirm(self, step: int, state: Mapping[str, Any], best: Mapping[str, Tensor] | None) -> None:
        """Store the state of a validated checkpoint; `best` are its weights if they are the best so far."""
        ...

    def discard(self, step: int) -> None:
        """Remove the checkpoint of a step whose validation has failed."""
        ...

    def load(self) -> Snapshot | None:
        """Return the last checkpoint that can be read; None if there is none."""
        ...


def full_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors by name, gathered from all processes where they are sharded."""
    return {name: full_tensor(tensor) for name, tensor in tensors.items()}


# --- random generators ---


def seed_process(seed: int, rank: int) -> None:
    """Seed torch after the weights are drawn, so that each process draws other dropout masks."""
    if rank > 0:
        torch.manual_seed((seed + 0x9E3779B97F4A7C15 * rank) % 2**63)


def take_generators(device: torch.device) -> dict[str, Tensor]:
    """Return the states of the generators from which training on this device draws."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def put_generators(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Set the states that `take_generators` returned."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)


def generators_of_all(device: torch.device, world: World) -> dict[str, Tensor]:
    """Return the states in every process, for a checkpoint: generator.cpu.0, generator.cpu.1, ..."""
    return {
        f"generator.{kind}.{rank}": state
        for kind, local_state in take_generators(device).items()
        for rank, state in enumerate(world.gather_tensors(local_state))
    }


def restore_generators(tensors: Mapping[str, Tensor], device: torch.device, world: World, seed: int) -> None:
    """Set this process's states; a process that did not exist when they were saved is seeded instead."""
    end = f".{world.rank}"
    states = {
        key.removeprefix("generator.").removesuffix(end): state
        for key, state in tensors.items()
        if key.startswith("generator.") and key.endswith(end)
    }
    if states:
        put_generators(states, device)
    else:
        seed_process(seed, world.rank)
