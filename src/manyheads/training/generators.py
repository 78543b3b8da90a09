"""The states of torch's random generators, in this process and in all processes."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from manyheads.training.distributed import World

__all__ = ["generators_of_all", "put_generators", "restore_generators", "seed_process", "take_generators"]


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
        for kind, own in take_generators(device).items()
        for rank, state in enumerate(world.gather_tensors(own))
    }


def restore_generators(tensors: Mapping[str, Tensor], device: torch.device, world: World, seed: int) -> None:
    """Set this process's states; a process that did not exist when they were saved is seeded instead."""
    end = f".{world.rank}"
    own = {
        key.removeprefix("generator.").removesuffix(end): state
        for key, state in tensors.items()
        if key.startswith("generator.") and key.endswith(end)
    }
    if own:
        put_generators(own, device)
    else:
        seed_process(seed, world.rank)
